package main

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writingHasEffect shows that what users write is carried out: the sample as it is, then a change of each field of its spec.
func writingHasEffect(ctx context.Context, t *trial) error {
	object, err := t.createSample(ctx)
	if err != nil {
		return err
	}
	for _, write := range t.writes {
		before := t.children(object)
		t.logf("writing spec.%s", write.field)
		if err := t.change(ctx, object, write.change); err != nil {
			return err
		}
		var effects []check
		if write.effect != nil {
			effects = append(effects, func(ctx context.Context) (string, error) { return write.effect(ctx, t, object) })
		}
		if err := t.carriedOut(ctx, object, effects...); err != nil {
			return fmt.Errorf("after a write of spec.%s: %w", write.field, err)
		}
		for _, child := range t.leftBehind(before, t.children(object)) {
			if err := t.until(ctx, t.called(child)+" is gone", managerLog, t.gone(child)); err != nil {
				return fmt.Errorf("after a write of spec.%s: %w", write.field, err)
			}
		}
	}
	if fields := t.bundle.untried(t.kind); len(fields) > 0 {
		t.suggestions = append(t.suggestions, fmt.Sprintf("nothing shows that writing spec.%s of a %s has an effect: add it to writes in test/scorecard/kinds.go",
			strings.Join(fields, ", spec."), t.name))
	}
	return nil
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
