package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/testenv"
)

// batchOf returns a batch that took so many seconds.
func batchOf(a arm, round, foos int, seconds, cpu float64, requests map[string]int) *batch {
	return &batch{Arm: a.name, Round: round, Foos: foos, Converged: foos, Seconds: seconds, Latency: spread{0.01, 0.05, 0.1}, Requests: requests,
		cost: cost{CPU: map[string]float64{controllerProcess: cpu, apiServer: 3, etcd: 1}}}
}

// everything returns something found in every section, with all bars met.
func everything() *found {
	f := &found{Scale: short, Settings: []proof.Setting{{Name: "machine", Value: "2 CPUs"}}, Measured: map[string]time.Time{}}
	f.Scale.Rounds = 2
	three := map[string]int{"patch deployments": 100, "patch foos/status": 100, "create events": 100}
	f.Paced = []*batch{batchOf(ours, 0, 100, 1, 1, three), batchOf(stock, 0, 100, 1, 1, map[string]int{"create deployments": 100})}
	for round := range 2 {
		f.Bursts = append(f.Bursts, batchOf(lowest, round, 100, 1, 0.1, three), batchOf(ours, round, 100, 1.2, 1, three), batchOf(lifted, round, 100, 5, 3, three))
		f.Steady = append(f.Steady, batchOf(ours, round, 100, 2, 1, three))
		for _, count := range f.Scale.Sizes {
			f.Sizes = append(f.Sizes, &size{Arm: ours.name, Round: round, Foos: count, Heap: int64(10e6 + 4000*count), RSS: int64(30e6 + 5000*count), Change: batchOf(ours, round, 50, 1, 0.1, three)})
		}
	}
	f.Bursts = append(f.Bursts, batchOf(stock, 0, 100, 100, 1, three))
	f.Prices = []*price{
		{Write: "create the Foo", OfFloor: true, OfOurs: true, CPU: []float64{1, 2, 3}}, {Write: "event", OfOurs: true, CPU: []float64{1, 2, 3}},
	}
	f.Sizes = append(f.Sizes, &size{Arm: lifted.name, Foos: f.Scale.Sizes[0], Heap: 20e6, RSS: 40e6})
	f.Idle = []*idleness{{Arm: ours.name, Foos: 200, Seconds: 600, Passes: 600, cost: cost{CPU: map[string]float64{}}}}
	f.Restarts = []*restart{{Arm: ours.name, Foos: 200, Requests: map[string]int{"watch foos": 1}}}
	f.Failovers = []*failover{{Signal: "SIGTERM", Gap: 2}, {Signal: "SIGKILL", Gap: 16}}
	f.Growths = []*growth{{Nodes: 20, StatusWrites: 5}}
	return f
}

func TestReport(t *testing.T) {
	directory := t.TempDir()
	var out strings.Builder
	if err := everything().report(&out, directory); err != nil {
		t.Fatalf("all bars are met, and yet: %v\n%s", err, out.String())
	}
	if strings.Contains(out.String(), string(proof.Missed)) || strings.Contains(out.String(), string(proof.NotJudged)) {
		t.Errorf("all bars are met, and yet:\n%s", out.String())
	}
	for _, name := range []string{"bench.md", "bench.json", "bench-requests.svg", "bench-rate.svg", "bench-cpu.svg", "bench-heap.svg", "bench-memory.svg", "bench-change.svg", "bench-failover.svg"} {
		if _, err := os.Stat(filepath.Join(directory, name)); err != nil {
			t.Error(err)
		}
	}
	if err := (&found{Scale: short}).report(&out, t.TempDir()); err != nil {
		t.Errorf("nothing was measured, and yet: %v", err)
	}
}

func TestWhatFailsAndWhatIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*found)
		isError bool
	}{
		"a request too many per Foo": {func(f *found) { f.Paced[0].Requests["patch foos/status"]++ }, true},
		"an event too many per Foo":  {func(f *found) { f.Paced[0].Requests["create events"]++ }, true},
		"a write at rest":            {func(f *found) { f.Idle[0].Writes = 1 }, true},
		"a write of a restart":       {func(f *found) { f.Restarts[0].Writes = 1 }, true},
		"requests of a restart":      {func(f *found) { f.Restarts[0].Requests["list foos"] = 25 }, true},
		"half the rate":              {func(f *found) { f.Bursts[1].Seconds, f.Bursts[4].Seconds = 9, 9 }, false},
		"much CPU time":              {func(f *found) { f.Bursts[1].CPU[controllerProcess], f.Bursts[4].CPU[controllerProcess] = 9, 9 }, false},
		"a change that costs more": {func(f *found) {
			f.Sizes[1].Change.CPU[controllerProcess], f.Sizes[3].Change.CPU[controllerProcess] = 1, 1
		}, false},
		"much memory":                     {func(f *found) { f.Sizes[1].Heap, f.Sizes[3].Heap = 1e9, 1e9 }, false},
		"a long failover":                 {func(f *found) { f.Failovers[0].Gap = 6 }, false},
		"a long failover after a killing": {func(f *found) { f.Failovers[1].Gap = 21 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := everything()
			test.change(f)
			var out strings.Builder
			err := f.report(&out, "")
			if !strings.Contains(out.String(), string(proof.Missed)) {
				t.Errorf("no bar is missed:\n%s", out.String())
			}
			if (err != nil) != test.isError {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// What is missed because of what is written is told with how much could be had.
func TestShareOfTheFloorIsExplained(t *testing.T) {
	f := everything()
	f.Bursts[1].Seconds, f.Bursts[4].Seconds = 9, 9
	var out strings.Builder
	if err := f.report(&out, ""); err != nil || !strings.Contains(out.String(), "with these writes, 0.50 (0.50 to 0.50") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestIntervalsAgainstBars(t *testing.T) {
	for _, test := range []struct {
		low, high       float64
		atMost, atLeast proof.Verdict
	}{{1, 2, proof.Met, proof.Missed}, {3, 4, proof.NotJudged, proof.Met}, {4, 5, proof.Missed, proof.Met}, {2, 4, proof.NotJudged, proof.NotJudged}} {
		i := measure.Interval{Low: test.low, High: test.high}
		if got := atMost(i, 3); got != test.atMost {
			t.Errorf("%v to %v is at most 3: %s", test.low, test.high, got)
		}
		if got := atLeast(i, 3); got != test.atLeast {
			t.Errorf("%v to %v is at least 3: %s", test.low, test.high, got)
		}
	}
}

func TestUnlimited(t *testing.T) {
	directory := t.TempDir()
	module := filepath.Join(testenv.Root(), "test", "bench", "samplecontroller")
	modfile, err := unlimited(t.Context(), module, directory)
	if err != nil {
		t.Fatal(err)
	}
	used, err := golang(t.Context(), module, "list", "-modfile="+modfile, "-m", "-f", "{{.Dir}}", "k8s.io/client-go")
	if err != nil || !strings.HasPrefix(used, directory) {
		t.Errorf("the client-go that is used is in %s, %v", used, err)
	}
	changed, err := os.ReadFile(filepath.Join(directory, "client-go", limitFile))
	if err != nil || strings.Contains(string(changed), limit) || !strings.Contains(string(changed), noLimit) {
		t.Errorf("the limit is not lifted: %v", err)
	}
}

func TestStartRequests(t *testing.T) {
	all := []testenv.Request{
		{Verb: "get", URL: "/apis"}, {Verb: "watch", Resource: "foos"},
		{Verb: "get", Resource: "leases"}, {Verb: "update", Resource: "leases"}, {Verb: "update", Resource: "leases"},
		{Verb: "create", Resource: "events", Namespace: testenv.OperatorNamespace}, {Verb: "create", Resource: "events", Namespace: "foos-1"},
		{Verb: "create", Resource: "tokenreviews"}, {Verb: "patch", Resource: "foos/status"},
	}
	requests, writes := startRequests(all)
	if measure.All(requests) != 7 || writes != 2 || requests["update leases"] != 1 {
		t.Errorf("%v, %d writes", requests, writes)
	}
}

func TestGap(t *testing.T) {
	begun := time.Now()
	at := func(seconds ...float64) []convergence {
		var all []convergence
		for _, s := range seconds {
			all = append(all, convergence{to: begun.Add(time.Duration(s * float64(time.Second)))})
		}
		return all
	}
	if got := gap(at(1, 1.5, 4, 4.1)); got != 2.5 {
		t.Errorf("the gap is %v", got)
	}
	if got := gap(at(1)); got != 0 {
		t.Errorf("the gap of one is %v", got)
	}
}

func TestFoundIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kept", "found.json")
	f := everything()
	f.Measured["requests"] = time.Unix(1, 0).UTC()
	if err := proof.Keep(path, f); err != nil {
		t.Fatal(err)
	}
	same, err := read(path, f.Scale)
	if err != nil || len(same.Bursts) != len(f.Bursts) || same.Measured["requests"].IsZero() || same.Idle[0].CPU == nil {
		t.Errorf("read %+v, %v", same, err)
	}
	if _, err := read(path, full); err == nil {
		t.Error("what was found with few Foos was taken for what was found with many")
	}
	if fresh, err := read(path+"-none", full); err != nil || len(fresh.Bursts) != 0 {
		t.Errorf("without a file: %+v, %v", fresh, err)
	}
}

func TestOrder(t *testing.T) {
	if there, back := order(0, ours, lifted), order(1, ours, lifted); there[0].name != ours.name || back[0].name != lifted.name {
		t.Error("every other round is the other way round")
	}
}

func TestGarbageThatIsTraced(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	lines := "I1121 started\ngc 1 @0.010s 2%: 0.1+0.5 ms clock, 0.2+0 ms cpu, 4->4->2 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 2 P\n" +
		"gc 12 @1.2s 1%: 0.1+9 ms clock, 0.2+0 ms cpu, 40->44->27 MB, 54 MB goal, 0 MB stacks, 0 MB globals, 2 P\nI1121 done\n"
	if err := os.WriteFile(log, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &controller{Process: &measure.Process{Log: log}}
	if heap, err := c.tracedHeap(); err != nil || heap != 27<<20 {
		t.Errorf("the heap is %d, %v", heap, err)
	}
}
