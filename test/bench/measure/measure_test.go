package measure

import (
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/example/memcached-operator/test/proof"
)

func TestProcess(t *testing.T) {
	p, err := Start(t.TempDir(), nil, "/bin/sh", "-c", "echo begun; while :; do :; done")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	if err := p.WaitUntil(t.Context(), "it prints", p.Has("begun")); err != nil {
		t.Fatal(err)
	}
	if pid, err := Child("sh"); err != nil || pid != p.PID {
		t.Errorf("the child is %d, %v; want %d", pid, err, p.PID)
	}
	if now, most, err := Memory(p.PID); err != nil || now == 0 || most < now {
		t.Errorf("memory: %d, %d, %v", now, most, err)
	}
	pids := map[string]int{"sh": p.PID}
	before, err := ReadUsage(pids)
	if err != nil {
		t.Fatal(err)
	}
	err = p.WaitUntil(t.Context(), "its CPU time counts", func() bool {
		after, err := ReadUsage(pids)
		cpu, _ := after.Since(before)
		return err == nil && cpu["sh"] > 0 && after.machine > before.machine
	})
	if err != nil {
		t.Error(err)
	}
	p.Stop()
	begun := time.Now()
	if err := p.WaitUntil(t.Context(), "the impossible", func() bool { return false }); err == nil ||
		time.Since(begun) > time.Minute {
		t.Errorf("waiting for a terminated process: %v", err)
	}
	if _, err := ReadUsage(pids); err == nil {
		t.Error("a terminated process has a CPU time")
	}
}

func TestUsage(t *testing.T) {
	begun := time.Now()
	before := Usage{begun, map[string]float64{"old": 5}, 100}
	after := Usage{begun.Add(10 * time.Second), map[string]float64{"old": 6, "new": 2}, 103 + float64(runtime.NumCPU())}
	cpu, others := after.Since(before)
	if cpu["old"] != 1 || cpu["new"] != 2 || others != 0.1 {
		t.Errorf("%v, and others %v", cpu, others)
	}
}

func TestPercentile(t *testing.T) {
	values := make([]float64, 200)
	for i := range values {
		values[i] = float64(i + 1)
	}
	for hundredths, want := range map[int]float64{0: 1, 1: 2, 50: 100, 99: 198, 100: 200} {
		if got := Percentile(values, hundredths); got != want {
			t.Errorf("p%d of 1 to 200 is %v, want %v", hundredths, got, want)
		}
	}
}

// The ends are those of the tables of the sign test: for 9 values the 2nd and the 8th, for 15 the 4th and the 12th.
func TestInterval(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   string
	}{
		{[]float64{3}, "3"},
		{[]float64{2, 10, 3, 123.4}, "6.5 (2 to 123, 4 rounds)"},
		{[]float64{8, 7, 6, 5, 4, 3, 2, 1}, "4.5 (1 to 8, 8 rounds)"},
		{[]float64{9, 8, 7, 6, 5, 4, 3, 2, 1}, "5 (2 to 8, 9 rounds)"},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, "8 (4 to 12, 15 rounds)"},
		{[]float64{0.0004, 2.0054}, "1.003 (0 to 2.005, 2 rounds)"},
	} {
		if got := IntervalOf(test.values).String(); got != test.want {
			t.Errorf("%v: %s, want %s", test.values, got, test.want)
		}
	}
}

func TestBar(t *testing.T) {
	for _, test := range []struct {
		values          []float64
		atMost, atLeast proof.Verdict
	}{{[]float64{1, 2}, proof.Met, proof.Missed}, {[]float64{4, 5}, proof.Missed, proof.Met},
		{[]float64{2, 4}, proof.NotJudged, proof.NotJudged}, {[]float64{1}, proof.NotJudged, proof.NotJudged}} {
		for isLeast, want := range map[bool]proof.Verdict{false: test.atMost, true: test.atLeast} {
			bar := Bar{Values: test.values, Limit: 3, IsLeast: isLeast}
			if got := bar.Claim(); got.Verdict != want || (want == proof.NotJudged) != (got.Note != "") {
				t.Errorf("%v, at least: %v: %+v", test.values, isLeast, got)
			}
			bar.Unjudged = "it is busy"
			if got := bar.Claim(); got.Verdict != proof.NotJudged || got.Note != bar.Unjudged {
				t.Errorf("%v: %+v", test.values, got)
			}
		}
	}
	for value, want := range map[float64]proof.Verdict{3: proof.Met, 3.001: proof.Missed} {
		one := Bar{Values: []float64{value}, Limit: 3, IsCount: true}
		most := Bar{Values: []float64{0, 1, 1, 1, 1, 1, 1, 1, value}, Limit: 3, IsCount: true}
		if one.Claim().Verdict != want || most.Claim().Verdict != want {
			t.Errorf("%v: %+v, %+v", value, one.Claim(), most.Claim())
		}
	}
}

func TestSamples(t *testing.T) {
	order := ""
	samples, err := Rounds(3, []string{"a", "b"}, func(name string) (*Sample, error) {
		order += name
		return &Sample{Program: name, Count: 2, Numbers: map[string]float64{"s": float64(len(order)), name: 7},
			Requests: map[string]int{"get": 2}, Others: 0.01}, nil
	})
	if err != nil || order != "abbaab" {
		t.Errorf("%q, %v", order, err)
	}
	want := []proof.Table{
		{Columns: []string{"program", "objects", "s", "a", "CPU used by others"}, Rows: [][]string{
			{"a", "2", "4 (1 to 5, 3 rounds)", "7", "up to 0.010"}, {"b", "2", "3 (2 to 6, 3 rounds)", "-", "up to 0.010"},
			{"a, times the b", "2", "0.833 (0.5 to 1.333, 3 rounds)", "-", ""}}},
		{Title: "Requests", Columns: []string{"request", "a, 2 objects", "b, 2 objects"},
			Rows: [][]string{{"get", "1", "1"}, {"all", "1", "1"}}},
	}
	if diff := cmp.Diff(want, samples.Tables("a", []string{"s", "a"}, true)); diff != "" {
		t.Error(diff)
	}
}
