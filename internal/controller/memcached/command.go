package memcached

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
)

// command returns the command that runs memcached. It starts as in release 0.2.0, and has further arguments only for
// settings that differ from memcached's own defaults, because every change restarts the nodes. All have the form
// --name=value: memcached parses -m=64 as 0 and exits.
func command(s settings) []string {
	args := []string{"memcached", fmt.Sprintf("--memory-limit=%d", s.memory/mebibyte), "-o", "modern"}
	if s.verbosity > 0 {
		args = append(args, "-"+strings.Repeat("v", int(s.verbosity)))
	}
	add := func(isSet bool, format string, values ...any) {
		if isSet {
			args = append(args, fmt.Sprintf(format, values...))
		}
	}
	add(s.port != defaultPort, "--port=%d", s.port)
	add(s.maxItemSize != defaultMaxItemSize, "--max-item-size=%d", s.maxItemSize)
	add(s.maxConnections != defaultMaxConnections, "--conn-limit=%d", s.maxConnections)
	add(s.threads != defaultThreads, "--threads=%d", s.threads)
	add(s.whenFull == cachev1alpha1.RejectWhenFull, "--disable-evictions")
	add(slices.Contains(s.disabled, cachev1alpha1.FlushCommand), "--disable-flush-all")
	add(slices.Contains(s.disabled, cachev1alpha1.DumpCommand), "--disable-dumping")
	add(slices.Contains(s.disabled, cachev1alpha1.WatchCommand), "--disable-watch")
	add(s.idleTimeout > 0, "--extended=idle_timeout=%d", s.idleTimeout)
	for _, name := range slices.Sorted(maps.Keys(s.options)) {
		option := name
		if value := s.options[name]; value != "" {
			option += "=" + string(value)
		}
		args = append(args, "--extended="+option)
	}
	return args
}
