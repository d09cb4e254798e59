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

// writingHasEffect shows that writes take effect: of the sample, then of each field of its spec.
func writingHasEffect(ctx context.Context, t *trial) {
	object := t.createSample(ctx)
	derived, untried := otherFields(t.bundle, t.kind)
	for _, write := range slices.Concat(t.writes, derived) {
		before := t.ChildrenOf(object)
		t.get(ctx, before...)
		t.logf("writing spec.%s", write.field)
		t.write(ctx, object, write)
		var effects []check
		if write.value != nil {
			effects = append(effects, t.isChanged(before, object))
		}
		if write.effect != nil {
			effects = append(effects, write.effect(t, object))
		}
		event := " after a write of spec." + write.field
		effects = slices.Insert(effects, 0, t.isReconciled(object))
		t.until(ctx, t.called(object)+" is reconciled"+event, managerLog, effects...)
		for _, child := range t.leftBehind(before, t.ChildrenOf(object)) {
			t.until(ctx, t.called(child)+" is deleted"+event, managerLog, t.deleted(child))
		}
	}
	if len(untried) > 0 {
		t.suggestions = append(t.suggestions, fmt.Sprintf("nothing shows that writing spec.%s of a %s has an effect: "+
			"add values to test/kinds, or a write to test/scorecard/kinds.go", strings.Join(untried, ", spec."), t.Name))
	}
}

// write changes one field of an object.
func (t *trial) write(ctx context.Context, object client.Object, w write) {
	if w.value == nil {
		t.change(ctx, object, w.change)
		return
	}
	patch := map[string]any{}
	t.Set(patch, "spec."+w.field, w.value(object))
	body, err := json.Marshal(patch)
	t.must(err)
	t.patch(ctx, object, client.RawPatch(types.MergePatchType, body))
}

// isChanged is a check that one of the children of an object has changed, or has another name.
func (t *trial) isChanged(before []client.Object, object client.Object) check {
	return func(ctx context.Context) (string, error) {
		for i, child := range t.ChildrenOf(object) {
			if err := t.Get(ctx, client.ObjectKeyFromObject(child), child); err != nil {
				return "", err
			}
			if child.GetName() != before[i].GetName() ||
				!equality.Semantic.DeepEqual(kinds.Desired(child), kinds.Desired(before[i])) {
				return "", nil
			}
		}
		return fmt.Sprintf("the children of %s are as they were before the write", t.called(object)), nil
	}
}

// leftBehind returns the children that an object had and should no longer have.
func (t *trial) leftBehind(before, after []client.Object) []client.Object {
	return slices.DeleteFunc(before, func(child client.Object) bool {
		return slices.ContainsFunc(after, func(stays client.Object) bool { return t.called(stays) == t.called(child) })
	})
}
