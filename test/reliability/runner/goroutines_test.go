package runner

import (
	"maps"
	"os"
	"runtime/pprof"
	"strings"
	"testing"
)

func TestCountGoroutines(t *testing.T) {
	const profile = `goroutine profile: total 4
3 @ 0x1 0x2 0x3
#	0x1	internal/poll.(*FD).Read+0x2a	/go/src/internal/poll/fd.go:165
#	0x2	example.com/us.(*Queue[go.shape.int]).work+0x3c	/us/queue.go:7

1 @ 0x4
#	0x4	main.main+0x10	/us/main.go:3

`
	counts, err := countGoroutines(strings.NewReader(profile))
	if expected := map[string]int{"example.com/us.(*Queue[go.shape.int]).work": 3, "main.main": 1}; err != nil ||
		!maps.Equal(counts, expected) {
		t.Errorf("%v, %v", counts, err)
	}
}

func TestCountGoroutinesOfThisProcess(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/profile")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := pprof.Lookup("goroutine").WriteTo(file, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	counts, err := countGoroutines(file)
	if err != nil || counts["testing.tRunner"] == 0 {
		t.Errorf("%v, %v", counts, err)
	}
}
