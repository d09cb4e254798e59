package runner

import (
	"context"
	"errors"
	"regexp"
	"time"

	"github.com/example/memcached-operator/test/bench/measure"
)

var servesProfiles = regexp.MustCompile(`"name":"pprof","addr":"([^"]+)"`)

// goroutines counts the goroutines of the running process by the function that started them. It takes the lower count
// of two profiles, so that short-lived goroutines do not count.
func (m *manager) goroutines(ctx context.Context) (map[string]int, error) {
	match := servesProfiles.FindStringSubmatch(m.current())
	if match == nil {
		return nil, errors.New("the operator does not serve profiles")
	}
	fewest, err := readGoroutines(ctx, match[1])
	if err != nil {
		return nil, err
	}
	pause(ctx, 100*time.Millisecond)
	again, err := readGoroutines(ctx, match[1])
	for function, n := range fewest {
		fewest[function] = min(n, again[function])
	}
	return fewest, err
}

func readGoroutines(ctx context.Context, address string) (map[string]int, error) {
	read, err := measure.Profile(ctx, "http://"+address+"/debug/pprof/goroutine")
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, stack := range read.Sample {
		if len(stack.Location) > 0 { // a goroutine that has not started has no stack
			outermost := stack.Location[len(stack.Location)-1].Line
			counts[outermost[len(outermost)-1].Function.Name] += int(stack.Value[0])
		}
	}
	return counts, nil
}
