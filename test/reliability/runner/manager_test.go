package runner

import (
	"strings"
	"testing"
)

// Once its controllers have started, an operator may exit only if it loses its lease.
func TestMayEnd(t *testing.T) {
	begun := strings.Repeat(`{"level":"INFO","msg":"Starting workers"}`+"\n", controllers)
	for logged, may := range map[string]bool{
		"":                                       true,
		begun[len(begun)/controllers:]:           true,
		begun:                                    false,
		begun + `{"msg":"It","err":"no answer"}`: false,
		begun + `{"level":"ERROR","msg":"leader election lost"}`: true,
	} {
		if mayEnd(logged) != may {
			t.Errorf("%q: %t", logged, !may)
		}
	}
}
