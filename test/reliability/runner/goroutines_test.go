package runner

import (
	"bytes"
	"runtime/pprof"
	"testing"
)

// stay says that it has begun, and ends when a channel is closed.
func stay(begun chan bool, end chan struct{}) {
	begun <- true
	<-end
}

func TestCountGoroutines(t *testing.T) {
	begun, end := make(chan bool), make(chan struct{})
	defer close(end)
	for range 3 {
		go stay(begun, end)
		<-begun
	}
	var written bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&written, 0); err != nil {
		t.Fatal(err)
	}
	counts, err := countGoroutines(&written)
	const own = "github.com/example/memcached-operator/test/reliability/runner."
	if err != nil || counts["testing.tRunner"] == 0 || counts[own+"stay"] < 3 {
		t.Errorf("%v, %v", counts, err)
	}
}
