package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/pprof/profile"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/testenv"
)

// results returns two rounds of every section that meet all bars. The other program costs a multiple of this operator.
func results(other string, times float64) *found {
	f := &found{Run: &proof.Run{}, Scale: paired, Samples: map[string]measure.Samples{}}
	for _, name := range []string{other, ownName, ownName, other} {
		cost := 1.0
		if name == other {
			cost = times
		}
		f.Samples["creation"] = append(f.Samples["creation"], &measure.Sample{Program: name, Count: 100,
			Requests: map[string]int{"patch foos/status": 200, "create events": 100},
			Numbers: map[string]float64{requestsPerFoo: 3, requestsNoEvents: 2, foosPerSecond: 60 / cost,
				cpuPerFoos: cost}})
		f.Samples[latencySection] = append(f.Samples[latencySection], &measure.Sample{Program: name, Count: 100,
			Numbers: map[string]float64{latencyP50: 0.02 * cost, latencyP99: 0.1 * cost}})
		for _, foos := range f.Scale.Sizes {
			f.Samples["restart"] = append(f.Samples["restart"], &measure.Sample{Program: name, Count: foos,
				Numbers: map[string]float64{requestsAll: 20, writes: 0, idleWrites: 0, changeCPU: 5,
					heap: 10 + 0.004*float64(foos)}})
		}
	}
	for range 2 {
		f.Samples["creation"] = append(f.Samples["creation"], &measure.Sample{Program: floorName, Count: 100,
			Numbers: map[string]float64{foosPerSecond: 75}})
		f.Samples[latencySection] = append(f.Samples[latencySection], &measure.Sample{Program: floorName, Count: 100,
			Numbers: map[string]float64{latencyP50: 0.01, latencyP99: 0.05}})
		f.Samples[failoverSection] = append(f.Samples[failoverSection], &measure.Sample{Program: ownName, Count: 1,
			Numbers: map[string]float64{gapStopped: 3, gapKilled: 18}})
	}
	return f
}

// Requests and writes beyond a bar are an error; everything else that misses a bar is reported.
func TestBars(t *testing.T) {
	sampled, baseline := func() *found { return results(sampleName, 3) }, func() *found { return results(baselineName, 1) }
	// more adds to a number of this operator, in both rounds and with the most Foos.
	more := func(section, number string, by float64) func(*found) {
		return func(f *found) {
			of := f.Samples[section].Of(ownName, 0)
			for _, s := range of.Of(ownName, of[len(of)-1].Count) {
				s.Numbers[number] += by
			}
		}
	}
	for name, test := range map[string]struct {
		results func() *found
		change  func(*found)
		missed  string // the bar
		isError bool
	}{
		"a request per Foo too many": {sampled, more("creation", requestsNoEvents, 0.01), requestsNoEvents, true},
		"an event per Foo too many": {sampled, more("creation", requestsPerFoo, 0.01), "requests per Foo, with events",
			true},
		"a write while idle":              {sampled, more("restart", idleWrites, 1), "writes while idle", true},
		"a write of a restart":            {sampled, more("restart", writes, 1), "writes of a restart", true},
		"requests of a restart":           {sampled, more("restart", requestsAll, 4), "requests of a restart", true},
		"a lower rate":                    {sampled, more("creation", foosPerSecond, -5), "of the floor's", false},
		"a rate like another's":           {sampled, more("creation", foosPerSecond, -20), "times the sample-", false},
		"more CPU time":                   {sampled, more("creation", cpuPerFoos, 0.3), "per 1,000 Foos, s", false},
		"CPU time like another's":         {sampled, more("creation", cpuPerFoos, 2), "as a share of the sample-", false},
		"slower Foos":                     {sampled, more(latencySection, latencyP50, 0.01), "latency p50", false},
		"slow Foos among others":          {sampled, more(latencySection, latencyP99, 0.05), "latency p99", false},
		"a change among many costs more":  {sampled, more("restart", changeCPU, 1), "CPU time of a change", false},
		"more heap":                       {sampled, more("restart", heap, 1), "bytes of heap", false},
		"a Lease that is not released":    {sampled, more(failoverSection, gapStopped, 15), "after SIGTERM", false},
		"a Lease that lasts longer":       {sampled, more(failoverSection, gapKilled, 15), "after SIGKILL", false},
		"more requests than the baseline": {baseline, more("restart", requestsAll, 1), "with the baseline", true},
		"more CPU than the baseline":      {baseline, more("creation", cpuPerFoos, 0.15), "times the baseline's", false},
		"more heap than the baseline":     {baseline, more("restart", heap, 0.9), "heap per Foo, times the", false},
	} {
		t.Run(name, func(t *testing.T) {
			f := test.results()
			var out strings.Builder
			if err := f.report(&out, t.TempDir()); err != nil || strings.Contains(out.String(), string(proof.Missed)) ||
				strings.Contains(out.String(), string(proof.NotJudged)) {
				t.Fatalf("not all bars are met before the change: %v\n%s", err, out.String())
			}
			test.change(f)
			out.Reset()
			err := f.report(&out, "")
			isMissed := slices.ContainsFunc(strings.Split(out.String(), "\n"), func(line string) bool {
				return strings.Contains(line, test.missed) && strings.Contains(line, string(proof.Missed))
			})
			if (err != nil) != test.isError || !isMissed {
				t.Errorf("after the change: %v\n%s", err, out.String())
			}
		})
	}
}

// Times are not judged if other processes used much of the machine.
func TestBusyMachine(t *testing.T) {
	f := results(sampleName, 3)
	f.Samples["creation"][1].Others, f.Samples["restart"][0].Others = mostOthers+0.01, mostOthers+0.01
	f.Samples[latencySection][1].Others = mostOthers + 0.01
	for _, b := range f.bars() {
		isTime := strings.Contains(b.What, "CPU time") || strings.HasPrefix(b.What, "rate,") ||
			strings.HasPrefix(b.What, "latency ")
		if c := b.Claim(); isTime != (c.Verdict == proof.NotJudged) {
			t.Errorf("%+v", c)
		}
	}
}

// Neither the leader election nor a reader of metrics counts, and the event of the election is no write for an object.
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

// Foos that are not ready in time are an error with the number of ready ones. A failed request ends a load at once.
func TestLoad(t *testing.T) {
	wrong := errors.New("wrong")
	for name, test := range map[string]struct {
		load   load
		ready  int   // how many become ready
		err    error // of the request for number 2
		want   string
		atMost time.Duration
	}{
		"all":                     {load{5, 5, 0}, 5, nil, "", 0},
		"some do not":             {load{5, 5, 0}, 3, nil, "3 of 5 Foos", time.Hour},
		"one at a time":           {load{50, 1, 0}, 50, nil, "", 0},
		"one every second":        {load{5, 5, time.Second}, 5, nil, "", 4*time.Second + time.Second/4},
		"the first does not":      {load{5, 1, 0}, 0, nil, "0 of 5 Foos", time.Hour},
		"a request fails":         {load{5, 5, 0}, 0, wrong, "wrong", 0},
		"a request fails, others": {load{50, 3, 0}, 0, wrong, "wrong", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, most, begun := newObserver(), 0, time.Now()
				seconds, err := test.load.run(t.Context(), o, 1, strconv.Itoa, func(_ context.Context, name string) error {
					o.mu.Lock()
					most = max(most, len(o.expected))
					o.mu.Unlock()
					if number, err := strconv.Atoi(name); err != nil || number < test.ready {
						time.Sleep(test.load.every / 4)
						o.becomes(name)
					} else if number == 2 {
						return test.err
					}
					return nil
				})
				if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
					t.Errorf("%v", err)
				}
				if slices.ContainsFunc(seconds, func(s float64) bool { return s != test.load.every.Seconds()/4 }) {
					t.Errorf("the Foos took %v s", seconds)
				}
				atLeast := time.Duration(test.load.count-1) * test.load.every
				if most > test.load.pending || time.Since(begun) > test.atMost || time.Since(begun) < atLeast {
					t.Errorf("%d Foos were pending, for %s", most, time.Since(begun))
				}
			})
		})
	}
}

// becomes has an observer observe that a Foo is ready.
func (o *observer) becomes(name string) {
	o.record(watch.Modified, &samplev1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: samplev1alpha1.FooStatus{AvailableReplicas: 1}})
}

// Requests of the operator count until it settles, and those of the sample-controller until its CPU time is read. It is
// an error if an operator does not settle.
func TestWhenRequestsCount(t *testing.T) {
	everySecond := make([]float64, 303)
	for second := range everySecond {
		everySecond[second] = float64(second)
	}
	for name, test := range map[string]struct {
		program  program
		at       []float64 // seconds
		want     int
		hasError bool
	}{
		"none":                           {operator, nil, 0, false},
		"late, of the operator":          {operator, []float64{0.5, 3.2, 4.5}, 3, false},
		"late, of the sample-controller": {sampleController, []float64{0.5, 2.9, 3.2, 4.5}, 2, false},
		"on and on":                      {operator, everySecond, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, request := auditing(t)
				c := &controller{Process: &measure.Process{PID: os.Getpid()}}
				m, err := p.meter(test.program, c)
				if err != nil {
					t.Fatal(err)
				}
				for _, seconds := range test.at {
					time.AfterFunc(time.Duration(seconds*float64(time.Second)), func() { request(test.program) })
				}
				s, err := m.readLater(t.Context(), c, 1)
				if (err != nil) != test.hasError || err == nil && measure.All(s.Requests) != test.want {
					t.Errorf("%+v, %v", s, err)
				}
			})
		})
	}
}

// auditing returns a plane with only an audit log, and a function with which a program sends a request.
func auditing(t *testing.T) (p *plane, request func(program)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.log")
	log, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	audit, err := testenv.OpenAudit(path)
	if err != nil {
		t.Fatal(err)
	}
	p = &plane{ControlPlane: &testenv.ControlPlane{Audit: audit}, bench: &bench{}, pids: map[string]int{}}
	return p, func(a program) {
		_, err := fmt.Fprintf(log, `{"stage":"ResponseComplete","verb":"patch","user":{"username":%q},`+
			`"objectRef":{"resource":"foos","subresource":"status"},"stageTimestamp":%q}`+"\n",
			a.user(), time.Now().UTC().Format(metav1.RFC3339Micro))
		if err != nil {
			t.Error(err)
		}
	}
}

// The innermost function that belongs to a part decides.
func TestAllocationParts(t *testing.T) {
	for _, c := range []struct {
		want      string
		functions []string
	}{
		{decoded, []string{"k8s.io/api/apps/v1.(*Deployment).Unmarshal", "k8s.io/client-go/tools/cache.(*Reflector).list"}},
		{slimmed, []string{"unique.Make", "github.com/example/memcached-operator/internal/slim.Text",
			"k8s.io/client-go/tools/cache.(*DeltaFIFO).add"}},
		{stored, []string{"k8s.io/client-go/tools/cache.(*storeIndex).addKeyToIndex"}},
		{"", []string{"net/http.(*Client).do", "k8s.io/client-go/tools/cache.(*Reflector).ListAndWatchWithContext"}},
	} {
		stack := &profile.Sample{}
		for _, name := range c.functions {
			stack.Location = append(stack.Location,
				&profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: name}}}})
		}
		if got := partOf(stack); got != c.want {
			t.Errorf("%v: %q, not %q", c.functions, got, c.want)
		}
	}
}
