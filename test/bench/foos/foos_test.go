package main

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/testenv"
)

// batchOf returns a batch that took so many seconds.
func batchOf(a program, round int, seconds, cpu float64, requests map[string]int) *batch {
	return &batch{Program: a.name, Round: round, Converged: 100, Seconds: seconds, Latency: latency{0.01, 0.05, 0.1},
		Requests: requests,
		Cost:     measure.Cost{CPU: map[string]float64{controllerProcess: cpu, apiServer: 3, etcd: 1}}}
}

// everything returns results of every section that meet all bars.
func everything() *found {
	f := &found{Scale: short, Operator: "0123456789ab", Benchmark: "fedcba987654", Measured: map[string]time.Time{}}
	for _, name := range names(sections) {
		f.Measured[name] = time.Unix(1, 0).UTC()
	}
	three := map[string]int{"patch deployments": 100, "patch foos/status": 100, "create events": 100}
	f.Paced = []*batch{batchOf(operator, 0, 1, 1, three), batchOf(stock, 0, 100, 1,
		map[string]int{"create deployments": 100})}
	for round := range 2 {
		f.Bursts = append(f.Bursts, batchOf(floor, round, 1, 0.1, three), batchOf(operator, round, 1.2, 1, three),
			batchOf(unlimited, round, 5, 3, three))
		for _, count := range f.Scale.Sizes {
			f.Sizes = append(f.Sizes, &size{Program: operator.name, Round: round, Foos: count, Heap: int64(10e6 + 4000*count),
				RSS: int64(30e6 + 5000*count), Change: batchOf(operator, round, 1, 0.1, three)})
		}
		f.Restarts = append(f.Restarts,
			&restart{Program: operator.name, Round: round, Ready: 2, Passed: 3, Requests: map[string]int{"watch foos": 1},
				First: 2.5},
			&restart{Program: unlimited.name, Round: round, Ready: 1, Requests: map[string]int{"update foos/status": 100},
				Writes: 100, First: 9})
	}
	f.Idle = []*idleness{{Program: operator.name, Foos: 200, Seconds: 600, Resyncs: 3}}
	f.Failovers = []*failover{{Signal: "SIGTERM", Gap: 2}, {Signal: "SIGKILL", Gap: 16}}
	f.Growths = []*growth{{Nodes: 20, StatusWrites: 5}, {Nodes: 30, StatusWrites: 4}}
	return f
}

// compared returns results of this operator beside a baseline that costs the same.
func compared() *found {
	f := everything()
	f.Baseline = "/before"
	for _, b := range f.Bursts {
		b.Program = strings.Replace(b.Program, unlimited.name, baselineName, 1)
		b.Cost = batchOf(operator, 0, 1, 1, nil).Cost
	}
	f.Paced[1] = batchOf(program{name: baselineName}, 0, 1, 1, f.Paced[0].Requests)
	f.Paced[0].Requests = map[string]int{"patch deployments": 100, "patch foos/status": 100, "create events": 100}
	for _, s := range slices.Clone(f.Sizes) {
		same := *s
		same.Program, same.Change = baselineName, batchOf(operator, s.Round, 1, 0.1, nil)
		f.Sizes = append(f.Sizes, &same)
	}
	for _, r := range f.Restarts[1:] {
		r.Requests = map[string]int{"watch foos": 1}
		r.Program = strings.Replace(r.Program, unlimited.name, baselineName, 1)
	}
	return f
}

// Requests and writes beyond a bar are an error; everything else that misses a bar is reported.
func TestWhatMissesABar(t *testing.T) {
	cpu := func(b *batch, seconds float64) { b.CPU[controllerProcess] = seconds }
	for name, test := range map[string]struct {
		f       *found
		change  func(*found)
		isError bool
	}{
		"a request too many per Foo": {everything(), func(f *found) { f.Paced[0].Requests["patch foos/status"]++ },
			true},
		"an event too many per Foo":        {everything(), func(f *found) { f.Paced[0].Requests["create events"]++ }, true},
		"a status too many of a Memcached": {everything(), func(f *found) { f.Growths[0].StatusWrites = 9 }, true},
		"a new Foo that a restart misses":  {everything(), func(f *found) { f.Restarts[0].Missing = 1 }, true},
		"a write at rest":                  {everything(), func(f *found) { f.Idle[0].Writes = 1 }, true},
		"a write of a restart":             {everything(), func(f *found) { f.Restarts[0].Writes = 1 }, true},
		"requests of a restart":            {everything(), func(f *found) { f.Restarts[0].Requests["list foos"] = 25 }, true},
		"half the rate": {everything(), func(f *found) { f.Bursts[1].Seconds, f.Bursts[4].Seconds = 9, 9 },
			false},
		"a fast stock sample-controller": {everything(), func(f *found) { f.Paced[1].Seconds = 25 }, false},
		"much CPU time": {everything(), func(f *found) { cpu(f.Bursts[1], 9); cpu(f.Bursts[4], 9) },
			false},
		"a change that costs more": {everything(), func(f *found) {
			cpu(f.Sizes[1].Change, 1)
			cpu(f.Sizes[3].Change,
				1)
		}, false},
		"much memory": {everything(), func(f *found) { f.Sizes[1].Heap, f.Sizes[3].Heap = 1e9, 1e9 },
			false},
		"a long failover": {everything(), func(f *found) { f.Failovers[0].Gap = 6 }, false},
		"one long failover after a kill": {everything(), func(f *found) {
			f.Failovers = append(f.Failovers,
				&failover{Signal: "SIGKILL", Gap: 21})
		}, false},
		"more requests than the baseline": {compared(), func(f *found) {
			f.Paced[1].Requests = map[string]int{"patch " +
				"foos/status": 100}
		}, true},
		"more of a restart": {compared(), func(f *found) { f.Restarts[0].Requests["list foos"] = 1 }, true},
		"more CPU time than the baseline": {compared(), func(f *found) { cpu(f.Bursts[1], 1.2); cpu(f.Bursts[4], 1.2) },
			false},
		"more heap than the baseline": {compared(), func(f *found) { f.Sizes[1].Heap += 1e5; f.Sizes[3].Heap += 1e5 },
			false},
		"more for a change than it": {compared(), func(f *found) {
			cpu(f.Sizes[1].Change,
				0.112)
			cpu(f.Sizes[3].Change, 0.112)
		}, false},
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
	for _, name := range []string{"bench.md", "bench.json", "bench-requests.svg", "bench-rate.svg", "bench-cpu.svg",
		"bench-heap.svg", "bench-failover.svg"} {
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
		if got := atMost(i, 3); got != test.atMost {
			t.Errorf("%v to %v is at most 3: %s", test.low, test.high, got)
		}
		if got := atLeast(i, 3); got != test.atLeast {
			t.Errorf("%v to %v is at least 3: %s", test.low, test.high, got)
		}
	}
}

// Where other processes used much of the machine, times are not judged, and everything else is.
func TestBusyMachine(t *testing.T) {
	for name, test := range map[string]struct {
		of    func(*found) *float64
		timed []string
	}{
		"a burst":  {func(f *found) *float64 { return &f.Bursts[3].Others }, []string{"share of the floor's", "unlimited"}},
		"paced":    {func(f *found) *float64 { return &f.Paced[1].Others }, []string{"stock"}},
		"a change": {func(f *found) *float64 { return &f.Sizes[2].Change.Others }, []string{"CPU time of a change"}},
		"a failover": {func(f *found) *float64 { return &f.Failovers[0].Others },
			[]string{"seconds in which no Foo became ready"}},
	} {
		for _, others := range []float64{0.1, 0.23} {
			f := everything()
			*test.of(f) = others
			counts, rest := f.claims()
			for _, claim := range append(counts, rest...) {
				isTimed := slices.ContainsFunc(test.timed, func(part string) bool { return strings.Contains(claim.What, part) })
				isOpen := claim.Verdict == proof.NotJudged && strings.HasSuffix(claim.Note,
					"other processes used up to 0.23 of the machine")
				if isOpen != (isTimed && others > 0.1) || !isOpen && claim.Verdict != proof.Met {
					t.Errorf("%s, others used %v: %+v", name, others, claim)
				}
			}
		}
	}
}

// rowOf returns the cells of the row of a table that begins with a text, as one text.
func rowOf(t *testing.T, table proof.Table, name string) string {
	t.Helper()
	for _, row := range table.Rows {
		if row[0] == name {
			return strings.Join(row[1:], " | ")
		}
	}
	t.Errorf("there is no row %q in %v", name, table.Rows)
	return ""
}

// Each table of times has what other processes used, the most of all rounds. Ratios have an interval, and what is
// unknown is "-".
func TestTables(t *testing.T) {
	f := everything()
	f.Paced[0].Others, f.Bursts[4].Others, f.Idle[0].Others, f.Restarts[2].Others, f.Failovers[0].Others = 0.011, 0.012,
		0.014, 0.015, 0.018
	for want, table := range map[string]proof.Table{"0.011": f.requestsSection().Tables[1],
		"0.012": f.rateSection().Tables[0],
		"0.014": f.idleSection().Tables[0], "0.015": f.restartSection().Tables[0]} {
		if row := rowOf(t, table, operator.name); table.Columns[len(table.Columns)-1] != othersColumn ||
			!strings.HasSuffix(row, " | "+want) {
			t.Errorf("there is no %s in %q: %s", want, row, table.Columns)
		}
	}
	if row := rowOf(t, f.failoverSection().Tables[0], "SIGTERM"); !strings.HasSuffix(row, " | 1 | 0.018") {
		t.Error(row)
	}
	if row := rowOf(t, f.restartSection().Tables[1], "requests"); row != "0.01 (0.01 to 0.01, min to max of 2)" {
		t.Error(row)
	}
	f.Restarts[1].Ready = 0
	if row := rowOf(t, f.restartSection().Tables[1], "ready after, s"); row != "-" {
		t.Errorf("a multiple of nothing is %s", row)
	}
	if row := rowOf(t, f.restartSection().Tables[0], unlimited.name); !strings.Contains(row, " | 200 | - | 9.00 | ") {
		t.Error(row)
	}
	perFoo := f.sizesSection(resource.MustParse("1Gi")).Tables[1]
	if row := rowOf(t, perFoo, operator.name); !strings.HasPrefix(row, "4000 (4000 to 4000, min to max of 2) | ") {
		t.Error(row)
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
		50e6: "fewer than 1000", 102e6: "about 2500", 202e6: "about 10000", 268e6: "about 15000", 702e6: "about 50000",
		800e6: "more than 50000",
	} {
		if got := f.capacity(limit); got != want {
			t.Errorf("%d bytes are enough for %s, not %s", limit, got, want)
		}
	}
	for value, want := range map[float64]int{15_999: 15_000, 9_999: 9_900, 123: 120, 99: 99, 7: 7} {
		if got := roundDown(value); got != want {
			t.Errorf("%v is rounded down to %d, not %d", value, got, want)
		}
	}
	if limit, err := memoryLimit(); err != nil || limit.Value() < 1<<20 {
		t.Errorf("the limit of config/manager is %s, %v", limit.String(), err)
	}
	if limit, err := memoryLimitIn([]byte("kind: Namespace\n")); err == nil {
		t.Errorf("there is no limit, and yet %s", limit.String())
	}
}

// A run adds to results of the same operator, benchmark and scale only, and replaces all others.
func TestFoundIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kept", "found.json")
	f := everything()
	if err := proof.Keep(path, f); err != nil {
		t.Fatal(err)
	}
	same, err := read(path, everything(), true)
	if err != nil || len(same.Bursts) != len(f.Bursts) || !reflect.DeepEqual(same.Measured, f.Measured) {
		t.Errorf("read %+v, %v", same, err)
	}
	for name, change := range map[string]func(*found){
		"another operator":      func(now *found) { now.Operator = "ba9876543210" },
		"another form":          func(now *found) { now.Benchmark = "456789abcdef" },
		"other numbers of Foos": func(now *found) { now.Scale = full },
	} {
		now := everything()
		now.Bursts = nil
		change(now)
		if _, err := read(path, now, true); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if fresh, err := read(path, now, false); err != nil || fresh != now {
			t.Errorf("%s, from the beginning: %+v, %v", name, fresh, err)
		}
	}
	if fresh, err := read(path+"-none", f, true); err != nil || fresh != f {
		t.Errorf("without a file: %+v, %v", fresh, err)
	}
}

// Only what measures changes the hash of the benchmark.
func TestBenchmark(t *testing.T) {
	root := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(root, "test", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content),
			0o600)); err != nil {
			t.Fatal(err)
		}
	}
	now := func() string {
		t.Helper()
		digits, err := benchmark(root)
		if err != nil || len(digits) != 12 {
			t.Fatalf("%q, %v", digits, err)
		}
		return digits
	}
	for _, name := range []string{"bench/foos/batch.go", "bench/measure/cpu.go", "bench/samplecontroller/go.mod",
		"testenv/audit.go"} {
		write(name, "one")
	}
	before := now()
	for name, measures := range map[string]bool{
		"bench/foos/batch.go": true, "bench/foos/floor/main.go": true, "bench/measure/cpu.go": true,
		"bench/samplecontroller/go.sum": true,
		"testenv/audit.go":              true, "bench/foos/found.go": true, "bench/foos/page.go": false,
		"bench/foos/page_tables.go": false,
		"bench/foos/claims.go":      false, "bench/foos/foos_test.go": false, "bench/cronjobs/main.go": false,
	} {
		write(name, "two")
		after := now()
		if (after != before) != measures {
			t.Errorf("%s: %s after %s", name, after, before)
		}
		before = after
	}
	if digits, err := benchmark(testenv.Root()); err != nil || len(digits) != 12 {
		t.Errorf("of this tree: %q, %v", digits, err)
	}
}

func TestUnlimited(t *testing.T) {
	directory := t.TempDir()
	module := filepath.Join(testenv.Root(), "test", "bench", "samplecontroller")
	modfile, err := liftLimit(t.Context(), module, directory)
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
		{Verb: "create", Resource: "events", Namespace: testenv.OperatorNamespace}, {Verb: "create", Resource: "events",
			Namespace: "foos-1"},
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

func TestOrder(t *testing.T) {
	both := []program{operator, unlimited}
	if there, back := order(0, both), order(1, both); there[0].name != operator.name || back[0].name != unlimited.name ||
		both[0].name != operator.name {
		t.Error("every other round is in reverse order")
	}
}
