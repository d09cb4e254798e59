package runner

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"
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
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/debug/pprof/goroutine?debug=1",
		nil)
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

// countGoroutines reads a profile: of each stack how many goroutines have it, then its functions, the outermost last.
func countGoroutines(profile io.Reader) (map[string]int, error) {
	counts := map[string]int{}
	var number int
	var outermost string
	lines := bufio.NewScanner(profile)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		fields := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "#\t") && len(fields) >= 3:
			outermost = fields[2][:max(0, strings.LastIndex(fields[2], "+"))]
		case len(fields) >= 2 && fields[1] == "@":
			if _, err := fmt.Sscan(fields[0], &number); err != nil {
				return nil, fmt.Errorf("a line of a profile of goroutines: %q: %w", line, err)
			}
		case line == "" && outermost != "":
			counts[outermost] += number
			outermost = ""
		}
	}
	return counts, lines.Err()
}
