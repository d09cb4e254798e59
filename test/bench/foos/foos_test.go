package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/testenv"
)

// batchOf returns a batch that took so many seconds.
func batchOf(program string, seconds, cpu float64, requests map[string]int) *batch {
	return &batch{Program: program, Foos: 100, Seconds: seconds, Latency: latency{0.01, 0.05},
		Requests: requests,
		Cost:     measure.Cost{CPU: map[string]float64{controllerProcess: cpu, apiServer: 3, etcd: 1}}}
}

// three returns three requests for each of 100 Foos.
func three() map[string]int {
	return map[string]int{"patch deployments": 100, "patch foos/status": 100, "create events": 100}
}

// everything returns results of every section that meet all bars.
func everything() *found {
	f := &found{Scale: short, Operator: "0123456789ab",
		Paced: []*batch{batchOf(operator.name, 1, 1, three()), batchOf(sampleController.name, 5, 1, three())},
		Idle: []*idleness{{Program: operator.name, Foos: 200, Seconds: 600, Resyncs: 3},
			{Program: sampleController.name, Foos: 200, Seconds: 600, Writes: 900}}}
	for range 2 {
		f.Bursts = append(f.Bursts, batchOf(operator.name, 1.2, 1, three()),
			batchOf(sampleController.name, 5, 3, three()))
		for _, count := range f.Scale.Sizes {
			f.Sizes = append(f.Sizes, sizeOf(operator.name, count))
		}
		f.Restarts = append(f.Restarts, &restart{Program: operator.name, Ready: 2, Passed: 3,
			Requests: map[string]int{"watch foos": 1}, First: 2.5})
	}
	return f
}

func sizeOf(program string, count int) *size {
	return &size{Program: program, Foos: count, Heap: int64(10e6 + 4000*count),
		RSS: int64(30e6 + 5000*count), Change: batchOf(program, 1, 0.1, three())}
}

// compared returns results of this operator beside a baseline that costs the same.
func compared() *found {
	f := everything()
	f.Baseline, f.Idle = "/before", nil
	f.Paced[1] = batchOf(baselineName, 1, 1, three())
	for round := range 2 {
		f.Bursts[2*round+1] = batchOf(baselineName, 1.2, 1, three())
		for _, count := range f.Scale.Sizes {
			f.Sizes = append(f.Sizes, sizeOf(baselineName, count))
		}
		f.Restarts = append(f.Restarts,
			&restart{Program: baselineName, Requests: map[string]int{"watch foos": 1}})
	}
	return f
}

// Requests and writes beyond a bar are an error; everything else that misses a bar is reported.
func TestWhatMissesABar(t *testing.T) {
	cpu := func(seconds float64, batches ...*batch) {
		for _, b := range batches {
			b.CPU[controllerProcess] = seconds
		}
	}
	for name, test := range map[string]struct {
		f       *found
		change  func(*found)
		isError bool
	}{
		"a request too many per Foo": {everything(), func(f *found) { f.Paced[0].Requests["patch foos/status"]++ },
			true},
		"an event too many per Foo": {everything(), func(f *found) { f.Paced[0].Requests["create events"]++ }, true},
		"a write at rest":           {everything(), func(f *found) { f.Idle[0].Writes = 1 }, true},
		"a write of a restart":      {everything(), func(f *found) { f.Restarts[0].Writes = 1 }, true},
		"requests of a restart":     {everything(), func(f *found) { f.Restarts[0].Requests["list foos"] = 25 }, true},
		"half the rate": {everything(), func(f *found) { f.Bursts[0].Seconds, f.Bursts[2].Seconds = 9, 9 },
			false},
		"much CPU time":            {everything(), func(f *found) { cpu(9, f.Bursts[0], f.Bursts[2]) }, false},
		"a change that costs more": {everything(), func(f *found) { cpu(1, f.Sizes[1].Change, f.Sizes[3].Change) }, false},
		"much memory":              {everything(), func(f *found) { f.Sizes[1].Heap, f.Sizes[3].Heap = 1e9, 1e9 }, false},
		"more requests than the baseline": {compared(), func(f *found) { f.Paced[1].Requests["create events"]-- },
			true},
		"more of a restart": {compared(), func(f *found) { f.Restarts[0].Requests["list foos"] = 1 }, true},
		"more CPU time than the baseline": {compared(), func(f *found) { cpu(1.2, f.Bursts[0], f.Bursts[2]) },
			false},
		"more heap than the baseline": {compared(), func(f *found) { f.Sizes[1].Heap += 1e5; f.Sizes[3].Heap += 1e5 },
			false},
		"more for a change than it": {compared(), func(f *found) { cpu(0.112, f.Sizes[1].Change, f.Sizes[3].Change) },
			false},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := test.f.report(&out, ""); err != nil || strings.Contains(out.String(), string(proof.Missed)) ||
				strings.Contains(out.String(), string(proof.NotJudged)) {
				t.Fatalf("all bars are met, and yet: %v\n%s", err, out.String())
			}
			test.change(test.f)
			out.Reset()
			if err := test.f.report(&out, ""); (err != nil) != test.isError || !strings.Contains(out.String(),
				string(proof.Missed)) {
				t.Errorf("the error is %v; is no bar missed?\n%s", err, out.String())
			}
		})
	}
}

func TestReport(t *testing.T) {
	directory := t.TempDir()
	var out strings.Builder
	if err := everything().report(&out, directory); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bench.md", "bench.json"} {
		if _, err := os.Stat(filepath.Join(directory, name)); err != nil {
			t.Error(err)
		}
	}
	if err := (&found{Scale: short}).report(&out, t.TempDir()); err != nil {
		t.Errorf("nothing was measured, and yet: %v", err)
	}
}

func TestIntervalsAgainstBars(t *testing.T) {
	for _, test := range []struct {
		low, high       float64
		atMost, atLeast proof.Verdict
	}{{1, 2, proof.Met, proof.Missed}, {3, 4, proof.NotJudged, proof.Met}, {4, 5, proof.Missed, proof.Met},
		{2, 4, proof.NotJudged, proof.NotJudged}} {
		i := measure.Interval{Low: test.low, High: test.high}
		if got := atMost("", i, 3); got.Verdict != test.atMost {
			t.Errorf("%v to %v is at most 3: %+v", test.low, test.high, got)
		}
		if got := atLeast("", i, 3); got.Verdict != test.atLeast {
			t.Errorf("%v to %v is at least 3: %+v", test.low, test.high, got)
		}
	}
}

// Where other processes used much of the machine, times are not judged, and everything else is.
func TestBusyMachine(t *testing.T) {
	isOfTime := func(what string) bool { return strings.Contains(what, "CPU time") || strings.HasPrefix(what, "rate,") }
	for name, results := range map[string]func() *found{"the sample-controller": everything, "a baseline": compared} {
		for _, others := range []float64{mostOthers, mostOthers + 0.01} {
			f := results()
			f.Bursts[1].Others, f.Sizes[0].Change.Others = others, others
			counts, rest := f.claims()
			times := 0
			for _, claim := range append(counts, rest...) {
				isJudged := others == mostOthers || !isOfTime(claim.What)
				if isOfTime(claim.What) {
					times++
				}
				if isJudged != (claim.Verdict == proof.Met) || isJudged != (claim.Note == "" ||
					!strings.Contains(claim.Note, "other processes")) {
					t.Errorf("%s, others used %v: %+v", name, others, claim)
				}
			}
			if times != 3 {
				t.Errorf("%s: there are %d claims about times", name, times)
			}
		}
	}
}

// Each table of times has what other processes used, the most of all rounds. Ratios have an interval, and what is
// unknown is "-".
func TestTables(t *testing.T) {
	rowOf := func(table proof.Table, name string) string {
		i := slices.IndexFunc(table.Rows, func(row []string) bool { return row[0] == name })
		if i < 0 {
			t.Fatalf("there is no row %q in %v", name, table.Rows)
		}
		return strings.Join(table.Rows[i], " | ")
	}
	f := everything()
	f.Paced[0].Others, f.Bursts[2].Others, f.Idle[0].Others, f.Restarts[1].Others = 0.011, 0.012, 0.014, 0.015
	for want, table := range map[string]proof.Table{"0.011": f.requestsSection().Tables[1],
		"0.012": f.rateSection().Tables[0], "0.014": f.idleSection().Tables[0], "0.015": f.restartSection().Tables[0]} {
		if row := rowOf(table, operator.name); table.Columns[len(table.Columns)-1] != othersColumn ||
			!strings.HasSuffix(row, " | "+want) {
			t.Errorf("there is no %s in %q: %s", want, row, table.Columns)
		}
	}
	f.Restarts[0].First, f.Restarts[1].First = 0, 0
	for want, table := range map[string]proof.Table{
		"Foos per second | 4.17 (4.17 to 4.17 in 2 rounds)":       f.rateSection().Tables[1],
		"this operator | 4000 (4000 to 4000 in 2 rounds) | ":      f.sizesSection(resource.MustParse("1Gi")).Tables[1],
		"this operator | 2.00 | 3.00 | 1 | 0 | - | - | - | 0.015": f.restartSection().Tables[0],
		"all | 3.000 | 3.000": f.requestsSection().Tables[0],
		"sample-controller | 200 | 600 | every 30 s | 0 | 900 | 0.0000": f.idleSection().Tables[0],
	} {
		name, _, _ := strings.Cut(want, " | ")
		if row := rowOf(table, name); !strings.HasPrefix(row, want) {
			t.Errorf("%s, want %s", row, want)
		}
	}
}

// How many Foos the memory limit is enough for is interpolated, never extrapolated.
func TestCapacity(t *testing.T) {
	f := &found{Scale: scale{Sizes: []int{1000, 10_000, 50_000}}}
	for round := range 3 {
		for i, peak := range []int64{80e6, 200e6, 700e6} {
			f.Sizes = append(f.Sizes, &size{Program: operator.name, Foos: f.Scale.Sizes[i], Peak: peak + int64(round)*1e6})
		}
	}
	for limit, want := range map[int64]string{
		50e6: "fewer than 1000", 102e6: "about 2500", 202e6: "about 10000", 268e6: "about 15200", 702e6: "about 50000",
		800e6: "more than 50000",
	} {
		if got := f.capacity(limit); got != want {
			t.Errorf("%d bytes are enough for %s, not %s", limit, got, want)
		}
	}
	if limit, err := memoryLimit(); err != nil || limit.Value() < 1<<20 {
		t.Errorf("the limit of config/manager is %s, %v", limit.String(), err)
	}
}

func TestLimitIsLifted(t *testing.T) {
	directory := t.TempDir()
	module := filepath.Join(testenv.Root(), "test", "bench", "samplecontroller")
	modfile, err := liftLimit(t.Context(), module, directory)
	if err != nil {
		t.Fatal(err)
	}
	used, err := measure.Go(t.Context(), module, "list", "-modfile="+modfile, "-m", "-f", "{{.Dir}}", "k8s.io/client-go")
	if err != nil || !strings.HasPrefix(used, directory) {
		t.Errorf("the client-go that is used is in %s, %v", used, err)
	}
	changed, err := os.ReadFile(filepath.Join(directory, "client-go", limitFile))
	if err != nil || strings.Contains(string(changed), limit) || !strings.Contains(string(changed), noLimit) {
		t.Errorf("the limit is not lifted: %v", err)
	}
}

// Neither the leader election nor who reads metrics counts, and the event of the election is no write for an object.
func TestWhichRequestsCount(t *testing.T) {
	counted, writes := 0, 0
	for _, request := range []testenv.Request{
		{Verb: "get", URL: "/apis"}, {Verb: "watch", Resource: "foos"},
		{Verb: "get", Resource: "leases"}, {Verb: "update", Resource: "leases"}, {Verb: "create", Resource: "tokenreviews"},
		{Verb: "create", Resource: "events", Namespace: testenv.OperatorNamespace},
		{Verb: "create", Resource: "events", Namespace: "foos-1"}, {Verb: "patch", Resource: "foos/status"},
	} {
		if request.User = operator.user(); by(operator)(request) && !by(sampleController)(request) {
			counted++
			if isWriteForObjects(request) {
				writes++
			}
		}
	}
	if counted != 5 || writes != 2 {
		t.Errorf("%d requests were counted, %d of them writes", counted, writes)
	}
}

func TestOrder(t *testing.T) {
	both := []program{operator, sampleController}
	if there, back := order(0, both), order(1, both); there[0] != operator || back[0] != sampleController ||
		both[0] != operator {
		t.Error("every other round is in reverse order")
	}
}
