package measure

import (
	"testing"
	"time"
)

func TestProcess(t *testing.T) {
	p, err := Start(t.TempDir(), nil, "/bin/sh", "-c", "echo begun; while :; do :; done")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	if err := p.WaitUntil(t.Context(), "it says so", p.Has("begun")); err != nil {
		t.Fatal(err)
	}
	if pid, err := Child("sh"); err != nil || pid != p.PID {
		t.Errorf("the child is %d, %v; want %d", pid, err, p.PID)
	}
	before, err := CPUSeconds(p.PID)
	if err != nil {
		t.Fatal(err)
	}
	busy, err := Busy()
	if err != nil {
		t.Fatal(err)
	}
	err = p.WaitUntil(t.Context(), "it has taken CPU time", func() bool {
		after, err := CPUSeconds(p.PID)
		return err == nil && after > before
	})
	if err != nil {
		t.Error(err)
	}
	err = p.WaitUntil(t.Context(), "the machine was busy", func() bool { // which is counted apart, and may be later
		all, err := Busy()
		return err == nil && all > busy
	})
	if err != nil {
		t.Error(err)
	}
	if now, most, err := Memory(p.PID); err != nil || now == 0 || most < now {
		t.Errorf("memory: %d, %d, %v", now, most, err)
	}
	p.Stop()
	if p.Alive() == nil {
		t.Error("it is alive after Stop")
	}
	begun := time.Now()
	if err := p.WaitUntil(t.Context(), "it is what it cannot be", func() bool { return false }); err == nil ||
		time.Since(begun) > time.Minute {
		t.Errorf("waiting for a process that has ended: %v", err)
	}
}
