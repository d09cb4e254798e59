package main

import (
	"context"
	"errors"
	"regexp"
	"slices"

	"github.com/google/pprof/profile"

	"github.com/example/memcached-operator/test/bench/measure"
)

// Parts of what an operator allocates while it starts: the innermost function of a stack that matches decides.
var allocationParts = []struct {
	number    string
	functions *regexp.Regexp
}{
	{decoded, regexp.MustCompile(`(?i)unmarshal|decode|/json\.|/serializer/|io\.ReadAll`)},
	{slimmed, regexp.MustCompile(`/internal/slim\.`)},
	{stored, regexp.MustCompile(`/tools/cache\.\(\*(threadSafeMap|storeIndex|cache|DeltaFIFO|RealFIFO)\)|[iI]ndexField`)},
}

// measureAllocations records what an operator has allocated since its start, and for what.
func (c *controller) measureAllocations(ctx context.Context, s *measure.Sample) error {
	if c.profiles == "" {
		return nil
	}
	allocs, err := measure.Profile(ctx, c.profiles+"/debug/pprof/allocs")
	if err != nil {
		return err
	}
	space := slices.IndexFunc(allocs.SampleType, func(t *profile.ValueType) bool { return t.Type == "alloc_space" })
	if space < 0 {
		return errors.New("the profile does not have the size of allocations")
	}
	for _, stack := range allocs.Sample {
		mb := float64(stack.Value[space]) / 1e6
		s.Numbers[allocated] += mb
		if part := partOf(stack); part != "" {
			s.Numbers[part] += mb
		}
	}
	return nil
}

// partOf returns the part to which a stack belongs; empty for none.
func partOf(stack *profile.Sample) string {
	for _, location := range stack.Location { // the innermost is the first
		for _, line := range location.Line {
			for _, part := range allocationParts {
				if part.functions.MatchString(line.Function.Name) {
					return part.number
				}
			}
		}
	}
	return ""
}
