package runner

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"time"

	"github.com/google/pprof/profile"
)

var servesProfiles = regexp.MustCompile(`"name":"pprof","addr":"([^"]+)"`)

// goroutines returns how many goroutines the process has that runs, by the function that each began with. Of two looks,
// each number is the lesser one, so that what is on its way does not count.
func (m *manager) goroutines(ctx context.Context) (map[string]int, error) {
	match := servesProfiles.FindStringSubmatch(m.current())
	if match == nil {
		return nil, fmt.Errorf("the operator does not serve profiles")
	}
	fewest, err := readGoroutines(ctx, match[1])
	if err != nil {
		return nil, err
	}
	pause(ctx, 100*time.Millisecond)
	again, err := readGoroutines(ctx, match[1])
	if err != nil {
		return nil, err
	}
	for function, n := range fewest {
		fewest[function] = min(n, again[function])
	}
	return fewest, nil
}

func readGoroutines(ctx context.Context, address string) (map[string]int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/debug/pprof/goroutine", nil)
	if err != nil {
		return nil, err
	}
	request.Close = true // a connection that stays has goroutines of its own
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return countGoroutines(response.Body)
}

// countGoroutines reads a profile: each stack with how many goroutines have it, its outermost function last.
func countGoroutines(content io.Reader) (map[string]int, error) {
	read, err := profile.Parse(content)
	if err != nil {
		return nil, fmt.Errorf("reading a profile of goroutines: %w", err)
	}
	counts := map[string]int{}
	for _, stack := range read.Sample {
		if len(stack.Location) == 0 {
			continue // it has not begun yet
		}
		frames := stack.Location[len(stack.Location)-1].Line
		counts[frames[len(frames)-1].Function.Name] += int(stack.Value[0])
	}
	return counts, nil
}
