package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/testenv"
)

const (
	// countedAfter is how long after the last Foo the CPU time is read, for all programs. Until then the requests of a
	// program that never settles count, too: its events are late.
	countedAfter = 3 * time.Second
	// quiet is how long a program that has settled sends no requests. settleLimit is how long that may take, and
	// restlessTime how long to wait for a program that never settles.
	quiet, settleLimit, restlessTime = 2 * time.Second, 5 * time.Minute, 10 * time.Second
	// startTime is how long a start is still measured after the operator has reconciled all Foos.
	startTime = 10 * time.Second
	// warmUp is the number of Foos that a program reconciles before it is measured.
	warmUp = 50
	// paced is the maximum number of pending Foos: few enough that requests do not depend on timing, and enough to keep
	// two cores busy.
	paced = 8
	// controllerProcess is the process that is measured.
	controllerProcess = "controller"
	// newPrefix is the prefix of Foos that are created while an operator starts with many existing ones.
	newPrefix = "new-"
)

// meter measures the requests and CPU time of a program from a moment on.
type meter struct {
	plane   *plane
	program program
	begun   time.Time
	mark    testenv.Mark
	usage   measure.Usage
}

// usage reads the CPU times of a controller, if it has been started, and of the processes beside it.
func (p *plane) usage(c *controller) (measure.Usage, error) {
	pids := maps.Clone(p.pids)
	if c != nil {
		pids[controllerProcess] = c.PID
	}
	return measure.ReadUsage(pids)
}

func (p *plane) meter(a program, c *controller) (*meter, error) {
	usage, err := p.usage(c)
	return &meter{p, a, time.Now(), p.Audit.Now(), usage}, err
}

func (m *meter) seconds() float64 { return time.Since(m.begun).Seconds() }

// requests returns those of the program so far, without watches.
func (m *meter) requests(filters ...func(testenv.Request) bool) []testenv.Request {
	return m.plane.Audit.Since(m.mark, append(filters, by(m.program), isNoWatch)...)
}

// read returns the usage so far as a sample for a number of Foos.
func (m *meter) read(c *controller, foos int) (*measure.Sample, error) {
	usage, err := m.plane.usage(c)
	cpu, others := usage.Since(m.usage)
	return &measure.Sample{Program: m.program.name, Count: foos, Numbers: map[string]float64{},
		Requests: measure.Counted(m.requests()), CPU: cpu, Others: others}, errors.Join(err, c.CheckAlive())
}

// readLater returns what the program has used for so many Foos that are ready now. Its CPU time is read countedAfter
// from now. Its requests count until it settles, or until then if it never does.
func (m *meter) readLater(ctx context.Context, c *controller, foos int) (*measure.Sample, error) {
	if err := measure.Pause(ctx, countedAfter); err != nil {
		return nil, err
	}
	s, err := m.read(c, foos)
	if err != nil {
		return nil, err
	}
	if m.program.isOperator {
		if err := m.plane.settle(ctx, m.program); err != nil {
			return nil, err
		}
		s.Requests = measure.Counted(m.requests())
	}
	each := 1 / float64(foos)
	s.Numbers[requestsPerFoo] = float64(measure.All(s.Requests)) * each
	s.Numbers[requestsNoEvents] = float64(measure.All(s.Requests)-s.Requests["create events"]) * each
	s.Numbers[cpuPerFoos] = 1000 * each * s.CPU[controllerProcess]
	s.Numbers[systemPerFoos] = 1000 * each * (s.CPU[controllerProcess] + s.CPU[apiServer] + s.CPU[etcd])
	return s, nil
}

// by returns a filter for the requests of a program, without leader election and the authentication of metrics readers.
func by(a program) func(testenv.Request) bool {
	left := []string{"leases", "tokenreviews", "subjectaccessreviews"}
	return func(r testenv.Request) bool { return r.User == a.user() && !slices.Contains(left, r.Resource) }
}

func isNoWatch(r testenv.Request) bool { return r.Verb != "watch" }

// isForOldFoos reports whether a request is not for a Foo that was created during a start.
func isForOldFoos(r testenv.Request) bool { return !strings.HasPrefix(r.Name, newPrefix) }

// isWriteForObjects reports whether a request is a write for an object, and not the event of the leader election, which
// a baseline from before 0.4.0 records.
func isWriteForObjects(r testenv.Request) bool {
	return r.IsWrite() && r.Namespace != testenv.OperatorNamespace
}

// settle waits until an operator sends no more requests. For another program it only waits.
func (p *plane) settle(ctx context.Context, a program) error {
	if !a.isOperator {
		return measure.Pause(ctx, restlessTime)
	}
	mark, begun := p.Audit.Now(), time.Now()
	for last := begun; time.Since(last) < quiet; {
		if time.Since(begun) >= settleLimit {
			return fmt.Errorf("%s still sends requests after %s", a.name, settleLimit)
		}
		if err := measure.Pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
		if requests := p.Audit.Since(mark, by(a), isNoWatch); len(requests) > 0 {
			last = requests[len(requests)-1].At
		}
	}
	return nil
}

// measureCreations measures the creation of Foos, no faster than they become ready.
func measureCreations(ctx context.Context, p *plane) (measure.Samples, error) {
	programs := p.bench.compared()
	if p.bench.baseline == "" {
		programs = append(programs, floor)
	}
	return measure.Rounds(p.bench.Rounds, programs, func(a program) (*measure.Sample, error) {
		return p.measureCreation(ctx, a, load{count: p.bench.Foos, pending: paced})
	})
}

// measureLatencies measures the latency of Foos that are created at half of the floor's rate, whether earlier ones are
// ready or not.
func measureLatencies(ctx context.Context, p *plane) (measure.Samples, error) {
	most, err := p.measureCreation(ctx, floor, load{count: p.bench.Foos, pending: paced})
	if err != nil {
		return nil, err
	}
	l := load{count: p.bench.Latencies, pending: p.bench.Latencies,
		every: time.Duration(2 * float64(time.Second) / most.Numbers[foosPerSecond])}
	measure.Log("a Foo every %s", l.every)
	return measure.Rounds(p.bench.Rounds, append(p.bench.compared(), floor), func(a program) (*measure.Sample, error) {
		return p.measureCreation(ctx, a, l)
	})
}

// measureCreation measures how a program that has just started reconciles Foos in a new namespace, and deletes them.
func (p *plane) measureCreation(ctx context.Context, a program, l load) (_ *measure.Sample, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	namespace, err := p.namespace(ctx)
	if err != nil {
		return nil, err
	}
	o := p.observe(ctx, namespace)
	c, err := p.startReady(ctx, a, "")
	if err != nil {
		return nil, err
	}
	defer func() {
		c.Stop()
		err = errors.Join(err, p.clear(ctx, namespace))
	}()
	if _, err := p.createFoos(ctx, namespace, "warm", o, load{count: warmUp, pending: paced}); err != nil {
		return nil, fmt.Errorf("warming up: %w", err)
	}
	if err := p.settle(ctx, a); err != nil {
		return nil, err
	}
	m, err := p.meter(a, c)
	if err != nil {
		return nil, err
	}
	latencies, err := p.createFoos(ctx, namespace, "foo", o, l)
	if err != nil {
		return nil, err
	}
	rate := float64(l.count) / m.seconds()
	s, err := m.readLater(ctx, c, l.count)
	if err != nil {
		return nil, err
	}
	slices.Sort(latencies)
	s.Numbers[foosPerSecond], s.Numbers[latencyP50], s.Numbers[latencyP99] = rate, measure.Percentile(latencies, 50),
		measure.Percentile(latencies, 99)
	return s, nil
}
