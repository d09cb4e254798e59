package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/kinds"
)

// writingHasEffect shows that what users write is carried out: the sample as it is, then a change of each field of its
// spec.
func writingHasEffect(ctx context.Context, t *trial) error {
	object, err := t.createSample(ctx)
	if err != nil {
		return err
	}
	derived, untried := t.bundle.otherFields(t.kind)
	for _, write := range slices.Concat(t.writes, derived) {
		before := t.ChildrenOf(object)
		if err := t.readAll(ctx, before); err != nil {
			return err
		}
		t.logf("writing spec.%s", write.field)
		if err := t.write(ctx, object, write); err != nil {
			return err
		}
		var effects []check
		if write.value != nil {
			effects = append(effects, t.isChanged(before, object))
		}
		if write.effect != nil {
			effects = append(effects, func(ctx context.Context) (string, error) { return write.effect(ctx, t, object) })
		}
		if err := t.carriedOut(ctx, object, effects...); err != nil {
			return fmt.Errorf("after a write of spec.%s: %w", write.field, err)
		}
		for _, child := range t.leftBehind(before, t.ChildrenOf(object)) {
			if err := t.until(ctx, t.called(child)+" is gone", managerLog, t.gone(child)); err != nil {
				return fmt.Errorf("after a write of spec.%s: %w", write.field, err)
			}
		}
	}
	if len(untried) > 0 {
		t.suggestions = append(t.suggestions, fmt.Sprintf("nothing shows that writing spec.%s of a %s has an effect: "+
			"add values to test/kinds, or a write to test/scorecard/kinds.go", strings.Join(untried, ", spec."), t.Name))
	}
	return nil
}

// write changes one field of an object.
func (t *trial) write(ctx context.Context, object client.Object, w write) error {
	if w.value == nil {
		return t.change(ctx, object, w.change)
	}
	value := w.value(object)
	for _, name := range slices.Backward(strings.Split("spec."+w.field, ".")) {
		value = map[string]any{name: value}
	}
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if err := t.Patch(ctx, object, client.RawPatch(types.MergePatchType, body)); err != nil {
		return refusal(fmt.Errorf("changing %s: %w", t.called(object), err))
	}
	return nil
}

// readAll reads objects.
func (t *trial) readAll(ctx context.Context, objects []client.Object) error {
	for _, object := range objects {
		if err := t.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
	}
	return nil
}

// isChanged is a check that the spec of one of the children of an object, or the name of one, is another than before.
func (t *trial) isChanged(before []client.Object, object client.Object) check {
	return func(ctx context.Context) (string, error) {
		after := t.ChildrenOf(object)
		if err := t.readAll(ctx, after); err != nil {
			return "", err
		}
		for i := range after {
			if after[i].GetName() != before[i].GetName() ||
				!equality.Semantic.DeepEqual(kinds.Spec(after[i]), kinds.Spec(before[i])) {
				return "", nil
			}
		}
		return fmt.Sprintf("the children of %s are as they were before the write", t.called(object)), nil
	}
}

// leftBehind returns the children that an object had and should have no more.
func (t *trial) leftBehind(before, after []client.Object) []client.Object {
	stay := map[string]bool{}
	for _, child := range after {
		stay[t.called(child)] = true
	}
	var left []client.Object
	for _, child := range before {
		if !stay[t.called(child)] {
			left = append(left, child)
		}
	}
	return left
}
