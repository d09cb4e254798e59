package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/testenv"
)

// observing returns an observer that is told by nobody but the test.
func observing() *observer {
	return &observer{awaited: map[string]awaited{}, seen: map[string]int32{}, progress: make(chan struct{}, 1)}
}

// becomes tells an observer that a Foo is as it should be.
func (o *observer) becomes(name string) {
	o.note(watch.Modified, &samplev1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: samplev1alpha1.FooStatus{AvailableReplicas: 1}})
}

// Foos that are not as they should be when the time is up are an error that says how many of how many are, unless the load may lack some.
func TestFoosThatDoNotConverge(t *testing.T) {
	for name, test := range map[string]struct {
		load      load
		converges func(number int) bool
		want      string
	}{
		"all":                        {load{count: 5}, func(int) bool { return true }, ""},
		"one does not":               {load{count: 5}, func(number int) bool { return number != 3 }, "4 of 5 Foos are as they should be after 1m0.5s"},
		"one may not":                {load{count: 5, mayLack: true}, func(number int) bool { return number != 3 }, ""},
		"some are never made":        {load{count: 9, underWay: 2, limit: time.Minute}, func(number int) bool { return number < 3 }, "3 of 9 Foos are as they should be after 1m0s"},
		"some may never be made":     {load{count: 9, underWay: 2, limit: time.Minute, mayLack: true}, func(number int) bool { return number < 3 }, ""},
		"at a rate, one does not":    {load{count: 5, rate: 1}, func(number int) bool { return number != 3 }, "4 of 5"},
		"at a rate, none":            {load{count: 2, rate: 1}, func(int) bool { return false }, "0 of 2"},
		"paced, all, one by another": {load{count: 50, underWay: 1}, func(int) bool { return true }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := observing()
				err := test.load.run(t.Context(), o, func(number int, since time.Time, reached func()) error {
					foo := fmt.Sprint(number)
					o.expect(foo, 1, since, reached)
					if test.converges(number) {
						o.becomes(foo)
					}
					return nil
				})
				if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

// The stock sample-controller makes what it can in a time; of all others every Foo is waited for.
func TestLoadOfAnArm(t *testing.T) {
	for _, a := range []arm{ours, lowest, lifted} {
		if l := (load{count: 5, underWay: 2}).of(a, time.Minute); l.mayLack || l.limit != 0 || l.count != 5 {
			t.Errorf("%s has %+v", a.name, l)
		}
	}
	if l := (load{count: 5, underWay: 2}).of(stock, time.Minute); !l.mayLack || l.limit != time.Minute || l.count != 5 {
		t.Errorf("%s has %+v", stock.name, l)
	}
}

// A run that is ended is no run whose time is up, even if it may lack some.
func TestEndWhileFoosConverge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		time.AfterFunc(time.Second, cancel)
		o := observing()
		err := load{count: 5, mayLack: true}.run(ctx, o, func(number int, since time.Time, reached func()) error {
			o.expect(fmt.Sprint(number), 1, since, reached)
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

// auditing returns a plane that has an audit log and nothing else, and how to have an arm request something.
func auditing(t *testing.T) (p *plane, request func(arm)) {
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
	p = &plane{ControlPlane: &testenv.ControlPlane{Audit: audit}, bench: &bench{}, pids: map[string]int{harness: os.Getpid()}}
	return p, func(a arm) {
		_, err := fmt.Fprintf(log, `{"stage":"ResponseComplete","verb":"patch","user":{"username":%q},"objectRef":{"resource":"foos","subresource":"status"},"stageTimestamp":%q}`+"\n",
			a.user, time.Now().UTC().Format(metav1.RFC3339Micro))
		if err != nil {
			t.Error(err)
		}
	}
}

// Of all arms, CPU time is read for the same time after the last Foo. What is requested is counted until then of who never rests, and of all
// others whenever it comes.
func TestWhatIsCounted(t *testing.T) {
	for _, a := range []arm{ours, lowest, lifted, stock} {
		for seconds, isInTime := range map[float64]bool{0.5: true, 2.9: true, 3.2: false, 4.5: false} {
			t.Run(fmt.Sprintf("%s, %v s after", a.name, seconds), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p, request := auditing(t)
					o := observing()
					b, err := p.measure(t.Context(), a, &controller{Process: &measure.Process{PID: os.Getpid()}}, o, func() error {
						o.expect("foo", 1, time.Now(), func() {})
						o.becomes("foo")
						request(a)
						time.AfterFunc(time.Duration(seconds*float64(time.Second)), func() { request(a) })
						return nil
					})
					if err != nil {
						t.Fatal(err)
					}
					want := 1
					if isInTime || !a.isRestless {
						want = 2
					}
					if got := measure.All(b.Requests); got != want || b.Converged != 1 {
						t.Errorf("%d requests were counted, of %d Foos", got, b.Converged)
					}
					if b.Machine != countedAfter.Seconds()*cpus {
						t.Errorf("the machine had %v s of CPU time", b.Machine)
					}
				})
			})
		}
	}
}

// What goes wrong with the Foos goes wrong with the measurement.
func TestMeasuringFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := auditing(t)
		wrong := errors.New("wrong")
		o := observing()
		o.done = []convergence{{time.Now(), time.Now()}}
		if _, err := p.measure(t.Context(), stock, &controller{Process: &measure.Process{PID: os.Getpid()}}, o, func() error { return wrong }); !errors.Is(err, wrong) {
			t.Errorf("%v", err)
		}
	})
}

// Who goes on and on is waited for in vain; of who comes to rest, that is an error.
func TestRest(t *testing.T) {
	for name, test := range map[string]struct {
		arm      arm
		requests int // one in each second
		isError  bool
	}{
		"it is at rest":                    {ours, 0, false},
		"it comes to rest":                 {ours, 60, false},
		"it does not":                      {ours, 400, true},
		"the floor does not":               {lowest, 400, true},
		"the sample-controller never does": {lifted, 400, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, request := auditing(t)
				for second := range test.requests {
					time.AfterFunc(time.Duration(second)*time.Second+time.Millisecond, func() { request(test.arm) })
				}
				begun := time.Now()
				err := p.rest(t.Context(), test.arm)
				if (err != nil) != test.isError {
					t.Errorf("%v", err)
				}
				if waited := time.Since(begun); test.arm.isRestless && waited > restless+time.Second {
					t.Errorf("it was waited for %s", waited)
				}
			})
		})
	}
}

// Of a process that has begun in between, all is counted; what no process that is read has taken is others'.
func TestCost(t *testing.T) {
	begun := time.Now()
	before := reading{at: begun, of: map[string]float64{apiServer: 5}, busy: 100}
	after := reading{at: begun.Add(10 * time.Second), of: map[string]float64{apiServer: 7, controllerProcess: 1}, busy: 100 + 3 + cpus}
	spent, err := before.until(after)
	if err != nil || spent.CPU[apiServer] != 2 || spent.CPU[controllerProcess] != 1 || spent.Machine != 10*cpus || spent.Others != 0.1 {
		t.Errorf("%+v, %v", spent, err)
	}
	p := &price{}
	p.add(cost{CPU: map[string]float64{apiServer: 2, etcd: 1, harness: 9}, Others: 0.2})
	if !slices.Equal(p.CPU, []float64{3}) || !slices.Equal(p.Others, []float64{0.2}) {
		t.Errorf("%+v", p)
	}
}

func TestWritesAmong(t *testing.T) {
	requests := []testenv.Request{{Verb: "get"}, {Verb: "patch"}, {Verb: "watch"}, {Verb: "create"}}
	if got := writesAmong(requests); got != 2 || requests[2].Verb != "watch" {
		t.Errorf("%d writes among %v", got, requests)
	}
}

// The rate that Foos come at follows from what the floor could do, if that was measured as it would be now.
func TestFloorRate(t *testing.T) {
	f := everything()
	if got := f.floorRate(); got != 100 {
		t.Errorf("the floor makes %v a second", got)
	}
	f.operator = "ba9876543210"
	if got := f.floorRate(); got != 0 {
		t.Errorf("with another operator the floor made %v a second", got)
	}
}
