package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
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

// becomes has an observer observe that a Foo is ready.
func (o *observer) becomes(name string) {
	o.record(watch.Modified, &samplev1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: samplev1alpha1.FooStatus{AvailableReplicas: 1}})
}

// Foos that are not ready in time are an error that says how many of how many are.
func TestFoosThatDoNotConverge(t *testing.T) {
	for name, test := range map[string]struct {
		load      load
		converges func(number int) bool
		want      string
	}{
		"all": {load{count: 5}, func(int) bool { return true }, ""},
		"one does not": {load{count: 5}, func(number int) bool { return number != 3 },
			"4 of 5 Foos match their specs after 1m0.5s"},
		"some are never created":      {load{count: 9, pending: 2}, func(number int) bool { return number < 3 }, "3 of 9"},
		"paced, one after the other":  {load{count: 50, pending: 1}, func(int) bool { return true }, ""},
		"paced, the first never does": {load{count: 5, pending: 1}, func(int) bool { return false }, "0 of 5"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, most := newObserver(nil), 0
				err := test.load.run(t.Context(), o, 1, strconv.Itoa, func(name string) error {
					o.mu.Lock()
					most = max(most, len(o.expected))
					o.mu.Unlock()
					if number, err := strconv.Atoi(name); err != nil || test.converges(number) {
						o.becomes(name)
					}
					return nil
				})
				if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
					t.Errorf("%v", err)
				}
				if test.load.pending > 0 && most > test.load.pending {
					t.Errorf("%d Foos were pending", most)
				}
			})
		})
	}
}

// An interrupted run is not one whose time is up; and a request that fails ends a run at once.
func TestInterruptedLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		err := load{count: 5}.run(ctx, newObserver(nil), 1, strconv.Itoa, func(string) error { return nil })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		wrong, begun := errors.New("wrong"), time.Now()
		err = load{count: 5}.run(t.Context(), newObserver(nil), 1, strconv.Itoa, func(string) error { return wrong })
		if !errors.Is(err, wrong) || time.Since(begun) > time.Second {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
	})
}

// auditing returns a plane that has an audit log and nothing else, and how to have a program send a request.
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
	p = &plane{ControlPlane: &testenv.ControlPlane{Audit: audit}, bench: &bench{},
		pids: map[string]int{harness: os.Getpid()}}
	return p, func(a program) {
		_, err := fmt.Fprintf(log, `{"stage":"ResponseComplete","verb":"patch","user":{"username":%q},`+
			`"objectRef":{"resource":"foos","subresource":"status"},"stageTimestamp":%q}`+"\n",
			a.user(), time.Now().UTC().Format(metav1.RFC3339Micro))
		if err != nil {
			t.Error(err)
		}
	}
}

// CPU time is read until the same time after the last Foo for all programs. Requests of a restless program count until
// then, and those of all others whenever they come.
func TestWhatIsCounted(t *testing.T) {
	for _, a := range []program{operator, sampleController} {
		for seconds, isInTime := range map[float64]bool{0.5: true, 2.9: true, 3.2: false, 4.5: false} {
			t.Run(fmt.Sprintf("%s, %v s after", a.name, seconds), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p, request := auditing(t)
					o := newObserver(nil)
					b, err := p.measure(t.Context(), a, &controller{Process: &measure.Process{PID: os.Getpid()}}, o, func() error {
						o.expect("foo", 1)
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
					if got := measure.All(b.Requests); got != want || b.Foos != 1 {
						t.Errorf("%d requests were counted, of %d Foos", got, b.Foos)
					}
					if b.Machine != countedAfter.Seconds()*float64(runtime.NumCPU()) {
						t.Errorf("the machine had %v s of CPU time", b.Machine)
					}
				})
			})
		}
	}
}

// An error with the Foos is an error of the measurement.
func TestMeasuringFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := auditing(t)
		wrong := errors.New("wrong")
		o := newObserver(nil)
		o.done = []convergence{{time.Now(), time.Now()}}
		if _, err := p.measure(t.Context(), operator, &controller{Process: &measure.Process{PID: os.Getpid()}}, o,
			func() error { return wrong }); !errors.Is(err, wrong) {
			t.Errorf("%v", err)
		}
	})
}

// That a program does not come to rest is an error, unless it is restless.
func TestRest(t *testing.T) {
	for name, test := range map[string]struct {
		program  program
		requests int // one in each second
		isError  bool
	}{
		"it is at rest":                    {operator, 0, false},
		"it comes to rest":                 {operator, 60, false},
		"it does not":                      {operator, 400, true},
		"the sample-controller never does": {sampleController, 400, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, request := auditing(t)
				for second := range test.requests {
					time.AfterFunc(time.Duration(second)*time.Second+time.Millisecond, func() { request(test.program) })
				}
				begun := time.Now()
				err := p.rest(t.Context(), test.program)
				if (err != nil) != test.isError {
					t.Errorf("%v", err)
				}
				if waited := time.Since(begun); test.program.isRestless && waited > restlessLimit+time.Second {
					t.Errorf("the wait was %s", waited)
				}
			})
		})
	}
}
