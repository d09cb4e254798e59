package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/testenv"
)

// populate creates Foos in a new namespace, runs the operator until it has settled, and stops it.
func (p *plane) populate(ctx context.Context, count int) (namespace string, err error) {
	measure.Log("creating %d Foos", count)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if namespace, err = p.namespace(ctx); err != nil {
		return "", err
	}
	o := p.observe(ctx, namespace)
	c, err := p.startReady(ctx, operator, namespace)
	if err != nil {
		return "", err
	}
	defer c.Stop()
	if _, err := p.createFoos(ctx, namespace, "foo", o, load{count: count, pending: 4 * paced}); err != nil {
		return "", err
	}
	return namespace, p.settle(ctx, operator)
}

// start is one start of an operator with a number of Foos.
type start struct {
	program
	foos      int
	namespace string // of the Foos
	watched   string // the namespace, or "" for all
}

// measureRestarts starts operators with different numbers of Foos that match their specs. Each number has a namespace,
// and an operator watches only that, so that the numbers can be measured in turn. If there is only one, it watches all.
func measureRestarts(ctx context.Context, p *plane) (measure.Samples, error) {
	replicas, starts := map[int]int32{}, []start{}
	for _, foos := range p.bench.Sizes {
		namespace, err := p.populate(ctx, foos)
		if err != nil {
			return nil, err
		}
		watched := namespace
		if len(p.bench.Sizes) == 1 {
			watched = ""
		}
		for _, a := range p.bench.compared() {
			if a.isOperator {
				starts = append(starts, start{a, foos, namespace, watched})
			}
		}
		replicas[foos] = 1
	}
	return measure.Rounds(p.bench.Restarts, starts, func(s start) (*measure.Sample, error) {
		replicas[s.foos] = 3 - replicas[s.foos] // Foos are scaled up and down in turn
		sample, err := p.measureRestart(ctx, s, replicas[s.foos])
		if err == nil && p.bench.Idle > 0 && s.foos == p.bench.Started {
			err = p.measureIdle(ctx, s, sample)
		}
		return sample, err
	})
}

// measureStarts starts the compared programs with the same Foos in turn, until their caches are filled. The
// sample-controller is stopped before it changes more than a few Foos.
func measureStarts(ctx context.Context, p *plane) (measure.Samples, error) {
	if _, err := p.populate(ctx, p.bench.Started); err != nil {
		return nil, err
	}
	return measure.Rounds(p.bench.Starts, p.bench.compared(), func(a program) (*measure.Sample, error) {
		m, err := p.meter(a, nil)
		if err != nil {
			return nil, err
		}
		c, err := p.startReady(ctx, a, "")
		if err != nil {
			return nil, err
		}
		defer c.Stop()
		ready := m.seconds()
		_, most, memoryErr := measure.Memory(c.PID)
		s, err := m.read(c, p.bench.Started)
		if err := errors.Join(err, memoryErr); err != nil {
			return nil, err
		}
		s.Numbers[readyAfter], s.Numbers[mostMemory] = ready, float64(most)/1e6
		s.Numbers[startCPU] = s.CPU[controllerProcess]
		return s, c.measureAllocations(ctx, s)
	})
}

func (p *plane) measureRestart(ctx context.Context, a start, replicas int32) (*measure.Sample, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m, err := p.meter(a.program, nil)
	if err != nil {
		return nil, err
	}
	c, err := p.start(ctx, a.program, a.watched)
	if err != nil {
		return nil, err
	}
	defer c.Stop()
	ready, newFoo, err := p.observeStart(ctx, m, c, a.namespace)
	if err := errors.Join(err, p.reconciled(ctx, c, a.foos)); err != nil {
		return nil, err
	}
	passed := m.seconds()
	if err := measure.Pause(ctx, startTime); err != nil {
		return nil, err
	}
	s, err := m.read(c, a.foos)
	if err != nil {
		return nil, err
	}
	requests := p.Audit.Since(m.mark, by(a.program), isForOldFoos)
	s.Requests = measure.Counted(requests)
	s.Numbers[requestsAll], s.Numbers[writes] = float64(len(requests)),
		float64(len(m.requests(isForOldFoos, isWriteForObjects)))
	s.Numbers[readyAfter], s.Numbers[newAfter], s.Numbers[allAfter] = ready, newFoo, passed
	s.Numbers[startCPU] = s.CPU[controllerProcess]
	if err := c.measureMemory(s); err != nil {
		return nil, err
	}
	if p.bench.Changes > 0 {
		return s, p.measureChanges(ctx, a, c, replicas, s)
	}
	return s, nil
}

// observeStart creates a Foo while an operator starts. It returns the seconds until the operator was ready, and until
// the Foo was.
func (p *plane) observeStart(ctx context.Context, m *meter, c *controller, namespace string) (ready, newFoo float64,
	err error) {
	var group errgroup.Group
	group.Go(func() error {
		err := c.ready(ctx)
		ready = m.seconds()
		return err
	})
	group.Go(func() error {
		prefix := fmt.Sprintf("%s%d", newPrefix, m.mark)
		o := p.observe(ctx, namespace, client.MatchingFields{"metadata.name": prefix + "-00000"})
		_, err := p.createFoos(ctx, namespace, prefix, o, load{count: 1, pending: 1})
		newFoo = m.seconds()
		return err
	})
	err = group.Wait()
	return ready, newFoo, err
}

// measureIdle records the requests of an operator while nothing changes but resyncs reconcile all Foos again. Resyncs
// take CPU time, so this operator is not the one whose changes are measured.
func (p *plane) measureIdle(ctx context.Context, a start, s *measure.Sample) error {
	threeResyncs := "--sync-period=" + (p.bench.Idle * 3 / 10).String()
	c, err := p.startReady(ctx, a.program, a.watched, threeResyncs)
	if err != nil {
		return err
	}
	defer c.Stop()
	if err := errors.Join(p.reconciled(ctx, c, a.foos), measure.Pause(ctx, startTime)); err != nil {
		return err
	}
	before, beforeErr := p.passes(c)
	m, err := p.meter(a.program, c)
	if err := errors.Join(beforeErr, err, measure.Pause(ctx, p.bench.Idle)); err != nil {
		return err
	}
	idle, err := m.read(c, s.Count)
	if err != nil {
		return err
	}
	s.Numbers[idleRequests], s.Numbers[idleWrites] = float64(measure.All(idle.Requests)),
		float64(len(m.requests(testenv.Request.IsWrite)))
	s.Numbers[idleCPU] = idle.CPU[controllerProcess] / p.bench.Idle.Seconds()
	after, err := p.passes(c)
	if err == nil && after-before < s.Count {
		err = fmt.Errorf("%d of %d Foos were reconciled again: there was no resync", after-before, s.Count)
	}
	return err
}

// measureChanges scales Foos, and records the CPU time of the controller for that.
func (p *plane) measureChanges(ctx context.Context, a start, c *controller, replicas int32, s *measure.Sample) error {
	changes := min(p.bench.Changes, a.foos)
	o := p.observe(ctx, a.namespace)
	m, err := p.meter(a.program, c)
	if err != nil {
		return err
	}
	err = p.scaleFoos(ctx, a.namespace, a.foos, replicas, o, load{count: changes, pending: paced})
	if err != nil {
		return err
	}
	changed, err := m.readLater(ctx, c, changes)
	if err != nil {
		return err
	}
	s.Numbers[changeCPU], s.Numbers[requestsPerChange] = changed.Numbers[cpuPerFoos], changed.Numbers[requestsPerFoo]
	s.Others = max(s.Others, changed.Others)
	return nil
}

// passes returns how many passes an operator has made for Foos.
func (p *plane) passes(c *controller) (int, error) { return c.metrics.Passes(p.token, "foo") }

// reconciled waits until an operator has reconciled every Foo since its start. It polls rarely enough not to affect the
// results.
func (p *plane) reconciled(ctx context.Context, c *controller, foos int) error {
	limit := 2*time.Minute + time.Duration(foos)*10*time.Millisecond
	err := wait.PollUntilContextTimeout(ctx, 250*time.Millisecond, limit, true, func(context.Context) (bool, error) {
		passes, err := p.passes(c)
		return err == nil && passes >= foos, c.CheckAlive()
	})
	if err != nil {
		return fmt.Errorf("waiting until all of %d Foos are reconciled: %w", foos, err)
	}
	return nil
}

var liveHeap = regexp.MustCompile(`# HeapAlloc = ([0-9]+)`)

// measureMemory makes an operator run the garbage collector, and records its live heap and the memory of the process.
func (c *controller) measureMemory(s *measure.Sample) error {
	response, err := http.Get(c.profiles + "/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	profile, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	match := liveHeap.FindSubmatch(profile)
	if match == nil {
		return errors.New("the heap profile does not have the size of the heap")
	}
	bytes, err := strconv.ParseFloat(string(match[1]), 64)
	now, most, memoryErr := measure.Memory(c.PID)
	s.Numbers[heap], s.Numbers[memory], s.Numbers[mostMemory] = bytes/1e6, float64(now)/1e6, float64(most)/1e6
	return errors.Join(err, memoryErr)
}
