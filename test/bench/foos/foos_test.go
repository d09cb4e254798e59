package main

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

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
	f := &found{Scale: short, operator: "0123456789ab", benchmark: "fedcba987654", Measured: map[string]measured{}}
	for _, name := range names(sections) {
		f.Measured[name] = measured{time.Unix(1, 0).UTC(), f.operator, f.benchmark, []proof.Setting{{Name: "machine", Value: "2 CPUs"}, {Name: "Go", Value: "1.26"}}}
	}
	f.Scale.Rounds = 2
	three := map[string]int{"patch deployments": 100, "patch foos/status": 100, "create events": 100}
	f.Paced = []*batch{batchOf(ours, 0, 100, 1, 1, three), batchOf(stock, 0, 100, 100, 1, map[string]int{"create deployments": 100})}
	f.Paced[1].Foos = 120
	for round := range 2 {
		f.Bursts = append(f.Bursts, batchOf(lowest, round, 100, 1, 0.1, three), batchOf(ours, round, 100, 1.2, 1, three), batchOf(lifted, round, 100, 5, 3, three))
		f.Steady = append(f.Steady, batchOf(ours, round, 100, 2, 1, three))
		for _, count := range f.Scale.Sizes {
			f.Sizes = append(f.Sizes, &size{Arm: ours.name, Round: round, Foos: count, Heap: int64(10e6 + 4000*count), RSS: int64(30e6 + 5000*count), Change: batchOf(ours, round, 50, 1, 0.1, three)})
		}
	}
	for round := range 2 {
		for room, cpu := range map[int]float64{0: 0.1, 500: 0.12} {
			f.Rooms = append(f.Rooms, &size{Arm: ours.name, Round: round, Foos: f.Scale.Sizes[0], Room: room, Change: batchOf(ours, round, 50, 1, cpu, three)})
		}
	}
	f.Bursts = append(f.Bursts, batchOf(stock, 0, 100, 1000, 1, three))
	f.Prices = []*price{
		{Write: "create the Foo", OfFloor: true, OfOurs: true, CPU: []float64{1, 2, 3}}, {Write: "event", OfOurs: true, CPU: []float64{1, 2, 3}},
	}
	f.Parts = []*part{{deciding, 0.1}, {elsewhere, 0.9}}
	f.Sizes = append(f.Sizes, &size{Arm: lifted.name, Foos: f.Scale.Sizes[0], Ready: 1, Heap: 20e6, RSS: 40e6, Peak: 40e6})
	f.Idle = []*idleness{{Arm: ours.name, Foos: 200, Seconds: 600, Looks: 3, cost: cost{CPU: map[string]float64{}}}}
	for round := range 2 {
		f.Restarts = append(f.Restarts,
			&restart{Arm: ours.name, Round: round, Foos: 200, Ready: 2, Passed: 3, Requests: map[string]int{"watch foos": 1}, First: 2.5, CPU: 1},
			&restart{Arm: lifted.name, Round: round, Foos: 200, Ready: 1, Requests: map[string]int{"update foos/status": 100}, Writes: 100, First: 9, CPU: 4})
	}
	f.Failovers = []*failover{{Signal: "SIGTERM", Gap: 2}, {Signal: "SIGKILL", Gap: 16}}
	f.Growths = []*growth{{Nodes: 20, StatusWrites: 5}, {Nodes: 30, StatusWrites: 4}}
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
	if err := proof.Keep(path, f); err != nil {
		t.Fatal(err)
	}
	same, err := read(path, f.Scale)
	if err != nil || len(same.Bursts) != len(f.Bursts) || !reflect.DeepEqual(same.Measured, f.Measured) || same.Idle[0].CPU == nil {
		t.Errorf("read %+v, %v", same, err)
	}
	if _, err := read(path, full); err == nil {
		t.Error("what was found with few Foos was taken for what was found with many")
	}
	if fresh, err := read(path+"-none", full); err != nil || len(fresh.Bursts) != 0 {
		t.Errorf("without a file: %+v, %v", fresh, err)
	}
}

// Rooms hold only with the sizes that they follow from.
func TestSizesAreForgottenWithTheirRooms(t *testing.T) {
	f := everything()
	f.Measured[roomSection] = f.Measured["requests"]
	f.forgetSizes()
	if f.Sizes != nil || f.Rooms != nil || f.has(roomSection) || !f.has("requests") {
		t.Errorf("left are %d sizes, %d rooms, and %v", len(f.Sizes), len(f.Rooms), f.Measured)
	}
}

// How many Foos the memory limit carries is read off the line between what was measured, and not guessed beyond.
func TestFoosThatTheMemoryLimitCarries(t *testing.T) {
	f := &found{Scale: scale{Sizes: []int{1000, 10_000, 50_000}}}
	for round := range 3 {
		for i, peak := range []int64{80e6, 200e6, 700e6} {
			f.Sizes = append(f.Sizes, &size{Arm: ours.name, Foos: f.Scale.Sizes[i], Peak: peak + int64(round)*1e6, Change: batchOf(ours, round, 50, 1, 0.1, nil)})
		}
	}
	for limit, want := range map[int64]string{
		50e6: "fewer than 1000", 102e6: "some 2500", 202e6: "some 10000", 268e6: "some 15000", 702e6: "some 50000", 800e6: "more than 50000",
	} {
		if got := f.carried(limit); got != want {
			t.Errorf("%d bytes carry %s, not %s", limit, got, want)
		}
	}
	for value, want := range map[float64]int{15_999: 15_000, 9_999: 9_900, 123: 120, 99: 99, 7: 7} {
		if got := roundDown(value); got != want {
			t.Errorf("%v is rounded down to %d, not %d", value, got, want)
		}
	}
	limit := resource.MustParse("256Mi")
	if text := strings.Join(f.sizesSection(limit).Text, " "); !strings.Contains(text, "can start with some 15000 Foos") || !strings.Contains(text, "256Mi") {
		t.Error(text)
	}
}

func TestMemoryLimit(t *testing.T) {
	const manifests = `
kind: Namespace
---
kind: Deployment
spec:
  template:
    spec:
      containers:
      - name: other
        resources: {limits: {memory: 1Mi}}
      - name: manager
        resources: {requests: {memory: 2Mi}, limits: {memory: 300Mi}}
`
	if limit, err := memoryLimitIn([]byte(manifests)); err != nil || limit.Value() != 300<<20 {
		t.Errorf("the limit is %s, %v", limit.String(), err)
	}
	if limit, err := memoryLimitIn([]byte(strings.ReplaceAll(manifests, "limits", "others"))); err == nil {
		t.Errorf("there is no limit, and yet %s", limit.String())
	}
	if limit, err := memoryLimit(); err != nil || limit.Value() < 1<<20 {
		t.Errorf("the limit of config/manager is %s, %v", limit.String(), err)
	}
}

// Only new Foos count that were made while all others were looked at; where there are none, nothing is told of their time.
func TestNewFoosOfARestart(t *testing.T) {
	ready := time.Unix(100, 0)
	at := func(seconds int) convergence {
		return convergence{ready.Add(time.Duration(seconds) * time.Second), ready.Add(time.Minute)}
	}
	between := madeBetween([]convergence{at(-1), at(1), at(2), at(4)}, ready, ready.Add(3*time.Second))
	if len(between) != 2 || between[0] != at(1) || between[1] != at(2) {
		t.Errorf("these count: %v", between)
	}
	if first := firstOf([]convergence{at(1)}, ready); first != 60 {
		t.Errorf("the first was as it should be after %v s", first)
	}
	none := &restart{Arm: ours.name, First: firstOf(nil, ready), Missing: 2}
	for _, test := range []struct {
		of   []*restart
		want string
	}{
		{[]*restart{none}, "- - 0 - - 2 0.000"},
		{[]*restart{none, {Arm: ours.name, Passed: 7, First: 6, NewFoosCount: 3, NewFoos: spread{1, 2, 3}, Others: 0.2},
			{Arm: ours.name, Passed: 8, First: 5, NewFoosCount: 1, NewFoos: spread{2, 3, 5}, Missing: 1, Others: 0.1}}, "7.50 5.50 4 1.500 4.000 3 0.200"},
	} {
		row := armTable("", byArm(test.of), moreStartColumns...).Rows[0]
		if got := strings.Join(row[1:], " "); got != test.want {
			t.Errorf("%d restarts: %s, not %s", len(test.of), got, test.want)
		}
	}
}

// What was measured with another operator, or with another form of the benchmark, is measured again, and until then told as such and not judged.
func TestOfWhichOperatorAndBenchmark(t *testing.T) {
	for name, test := range map[string]struct {
		operator, benchmark string
		differs             string
	}{
		"these":              {"0123456789ab", "fedcba987654", ""},
		"another operator":   {"ba9876543210", "fedcba987654", "of another operator, ba9876543210"},
		"another benchmark":  {"0123456789ab", "456789abcdef", "with another form of this benchmark"},
		"before it was kept": {"0123456789ab", "", "with another form of this benchmark"},
		"both others":        {"ba9876543210", "", "of another operator, ba9876543210, with another form of this benchmark"},
	} {
		t.Run(name, func(t *testing.T) {
			f := everything()
			f.Measured["requests"] = measured{At: time.Unix(1, 0).UTC(), Operator: test.operator, Benchmark: test.benchmark}
			f.Paced[0].Requests["patch foos/status"]++ // which misses a bar
			isSame := test.differs == ""
			if f.has("requests") != isSame || !f.has("idle") {
				t.Errorf("left out are requests: %v, idle: %v", f.has("requests"), f.has("idle"))
			}
			told := "section requests: 1970-01-01 00:00:01 UTC, operator 0123456789ab\n"
			if !isSame {
				told = "section requests: 1970-01-01 00:00:01 UTC, " + test.differs + ": measure it again\n"
			}
			var out strings.Builder
			if err := f.report(&out, ""); (err != nil) != isSame || !strings.Contains(out.String(), told) {
				t.Errorf("%v\n%s", err, out.String())
			}
			counted, timed := f.claims()
			for _, claim := range append(counted, timed...) {
				isOfSection := strings.Contains(claim.What, "per Foo") || strings.Contains(claim.What, "stock")
				if isOpen := claim.Verdict == proof.NotJudged; isOpen != (isOfSection && !isSame) || isOpen && !strings.HasSuffix(claim.Note, test.differs) {
					t.Errorf("%+v", claim)
				}
			}
			delete(f.Measured, "requests")
			if f.has("requests") {
				t.Error("what was never measured is left out")
			}
		})
	}
}

// Where sections were measured with different settings, each tells its own.
func TestSettings(t *testing.T) {
	f := everything()
	told := func() string {
		var lines []string
		for _, setting := range f.settings() {
			lines = append(lines, setting.Name+" = "+setting.Value)
		}
		return strings.Join(lines, "\n") + "\n"
	}
	const same = "machine = 2 CPUs\nGo = 1.26\noperator, by a hash of its sources = 0123456789ab\nsection requests = 1970-01-01 00:00:01 UTC, operator 0123456789ab\n"
	if got := told(); !strings.HasPrefix(got, same) {
		t.Errorf("with the same settings: %s", got)
	}
	idle := f.Measured["idle"]
	idle.Settings = []proof.Setting{{Name: "machine", Value: "4 CPUs"}, {Name: "Go", Value: "1.26"}}
	f.Measured["idle"] = idle
	got := told()
	for _, want := range []string{"section requests = 1970-01-01 00:00:01 UTC, operator 0123456789ab; machine: 2 CPUs\n",
		"section idle = 1970-01-01 00:00:01 UTC, operator 0123456789ab; machine: 4 CPUs\n"} {
		if !strings.HasPrefix(got, "Go = 1.26\noperator, by") || !strings.Contains(got, want) {
			t.Errorf("there is no %q in %s", want, got)
		}
	}
}

// Only what measures changes what stands for the benchmark.
func TestBenchmark(t *testing.T) {
	root := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(root, "test", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
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
	for _, name := range []string{"bench/foos/batch.go", "bench/measure/cpu.go", "bench/samplecontroller/go.mod", "testenv/audit.go"} {
		write(name, "one")
	}
	before := now()
	for name, measures := range map[string]bool{
		"bench/foos/batch.go": true, "bench/foos/floor/main.go": true, "bench/measure/cpu.go": true, "bench/samplecontroller/go.mod": true, "bench/samplecontroller/go.sum": true,
		"testenv/audit.go": true, "bench/foos/page.go": false, "bench/foos/page_sizes.go": false, "bench/foos/claims.go": false, "bench/foos/settings.go": false, "bench/foos/found.go": false,
		"bench/foos/foos_test.go": false, "bench/cronjobs/main.go": false,
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

// A sample belongs to the first part that any of its functions is of; the header of what pprof prints to none.
func TestParts(t *testing.T) {
	const line = "-----------+-------------------------------------------------------\n"
	traces := "File: manager\nType: cpu\nDuration: 10s, Total samples = 1.5s\n" + line +
		"     900ms   encoding/json.Marshal\n             github.com/example/memcached-operator/internal/owned.Apply[go.shape.struct {}]\n" +
		"             github.com/example/memcached-operator/internal/controller/foo.(*Reconciler).sync\n" + line +
		"     300ms   runtime.mallocgc\n             github.com/example/memcached-operator/internal/controller/foo.(*Reconciler).Reconcile\n" + line +
		"     200ms   runtime.gcDrain\n             runtime.gcBgMarkWorker\n" + line +
		"     0.1s    main.main\n" + line
	found, err := partsOf(traces)
	if err != nil || len(found) != len(parts)+1 {
		t.Fatal(found, err)
	}
	for _, p := range found {
		want := map[string]float64{"applying the Deployment": 0.6, deciding: 0.2, parts[0].what: 2. / 15, elsewhere: 1. / 15}[p.What]
		if p.Share < want-0.001 || p.Share > want+0.001 {
			t.Errorf("%s has %v, not %v", p.What, p.Share, want)
		}
	}
	if _, err := partsOf("Type: cpu\n"); err == nil {
		t.Error("nothing was taken for something")
	}
}

// What the operator could write instead is told beside what it writes.
func TestWritesInstead(t *testing.T) {
	f := everything()
	if tables := f.insteadTables(); tables != nil {
		t.Errorf("nothing else was measured: %v", tables)
	}
	f.Prices = append(f.Prices, &price{Write: "no event", Instead: "event", CPU: []float64{0.5, 1, 1.5}})
	if row := strings.Join(f.insteadTables()[0].Rows[0], " | "); row != "event | 2.00 | no event | 1.00 | 0.50 (0.50 to 0.50, min to max of 3)" {
		t.Error(row)
	}
	for _, row := range f.pricesSection().Tables[0].Rows {
		if row[0] == "no event" {
			t.Error("what it could write is among what it writes")
		}
	}
}
