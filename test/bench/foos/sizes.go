package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/example/memcached-operator/test/bench/measure"
)

// size is what an arm takes with so many Foos.
type size struct {
	Arm   string `json:"arm"`
	Round int    `json:"round"`
	Foos  int    `json:"foos"`
	// Room is how much may be allocated until the next garbage collection, in percent of the heap that is left of one; 0 for Go's default.
	Room int `json:"room,omitempty"`
	// Ready is how many seconds after its start its caches were filled.
	Ready float64 `json:"ready"`
	// Heap is what is alive after a garbage collection, RSS what the process has of the machine's memory then, and Peak the most it had.
	Heap int64 `json:"heap"`
	RSS  int64 `json:"rss"`
	Peak int64 `json:"peak"`
	// Change is what it takes to scale Foos; nil if that was not measured.
	Change *batch `json:"change,omitempty"`
}

// change returns the CPU seconds of the controller for 1,000 changes.
func (s *size) change() float64 { return s.Change.controller() }

// forgetSizes forgets what was measured with ever more Foos, and what was measured with the room that follows from it.
func (f *found) forgetSizes() {
	f.Sizes, f.Rooms = nil, nil
	delete(f.Measured, roomSection)
}

// measureSizes measures memory, and the cost of a change, with ever more Foos. They are in namespaces of their own, on one API server, and
// the operator is told which one to look at: so sizes can be measured in turn.
func measureSizes(ctx context.Context, p *plane, f *found) error {
	f.forgetSizes()
	namespaces := make([]string, len(f.Scale.Sizes))
	for i, count := range f.Scale.Sizes {
		namespace, err := p.populate(ctx, ours, count)
		if err != nil {
			return err
		}
		namespaces[i] = namespace
	}
	for round := range f.Scale.Rounds {
		indexes := []int{}
		for i := range f.Scale.Sizes {
			indexes = append(indexes, i)
		}
		if round%2 == 1 {
			slices.Reverse(indexes)
		}
		for _, i := range indexes {
			s, err := p.measureSize(ctx, namespaces[i], &size{Arm: ours.name, Round: round, Foos: f.Scale.Sizes[i]}, f.Scale.Changes, round)
			if err != nil {
				return err
			}
			f.Sizes = append(f.Sizes, s)
		}
	}
	for _, namespace := range namespaces {
		if err := p.clear(ctx, namespace); err != nil {
			return err
		}
	}
	return p.measureLiftedSizes(ctx, f)
}

// populate has an arm make Foos in a namespace, and stops it when it is at rest.
func (p *plane) populate(ctx context.Context, a arm, count int) (namespace string, err error) {
	p.bench.say("%s makes %d Foos", a.name, count)
	if namespace, err = p.namespace(ctx); err != nil {
		return "", err
	}
	return namespace, p.add(ctx, a, namespace, "foo", count)
}

// add has an arm make more Foos in a namespace.
func (p *plane) add(ctx context.Context, a arm, namespace, prefix string, count int) error {
	o := p.observe(ctx, namespace)
	defer o.stop()
	c, err := p.startReady(ctx, a, []string{"WATCH_NAMESPACE=" + namespace})
	if err != nil {
		return err
	}
	defer c.Stop()
	if err := p.makeFoos(ctx, namespace, prefix, o, load{count: count, underWay: 20 * paced}); err != nil {
		return fmt.Errorf("%s: %w", a.name, err)
	}
	return p.rest(ctx, a)
}

// measureRooms measures what the cost of a change owes to how much memory is used anew until garbage is collected: with the fewest Foos, the
// room that the operator has by default, and as much as it has with the most. All else is the same.
func measureRooms(ctx context.Context, p *plane, f *found) error {
	f.Rooms = nil
	few, many := f.ends(ours)
	if len(few) == 0 || !f.has("sizes") {
		return errors.New("it needs what the section sizes finds of this operator, with this form of the benchmark")
	}
	heap := func(sizes []*size) float64 {
		return measure.Median(each(sizes, func(s *size) float64 { return float64(s.Heap) }))
	}
	rooms := []int{0, int(100 * heap(many) / heap(few))}
	namespace, err := p.populate(ctx, ours, few[0].Foos)
	if err != nil {
		return err
	}
	for round := range f.Scale.Rounds {
		for _, room := range rooms {
			s, err := p.measureSize(ctx, namespace, &size{Arm: ours.name, Round: round, Foos: few[0].Foos, Room: room}, f.Scale.Changes, len(f.Rooms))
			if err != nil {
				return err
			}
			f.Rooms = append(f.Rooms, s)
		}
		slices.Reverse(rooms)
	}
	return nil
}

// measureSize measures the operator with the Foos of one namespace, and returns what it was given, filled in. Before is how often that was
// done in that namespace: Foos are scaled up and down in turn.
func (p *plane) measureSize(ctx context.Context, namespace string, s *size, changes, before int) (*size, error) {
	environment, room := []string{"WATCH_NAMESPACE=" + namespace}, ""
	if s.Room > 0 {
		variable := fmt.Sprintf("GOGC=%d", s.Room)
		environment, room = append(environment, variable), ", "+variable
	}
	p.bench.say("%s, round %d: with %d Foos%s", s.Arm, s.Round+1, s.Foos, room)
	o := p.observe(ctx, namespace)
	defer o.stop()
	begun := time.Now()
	c, err := p.startReady(ctx, ours, environment)
	if err != nil {
		return nil, err
	}
	defer c.Stop()
	s.Ready = time.Since(begun).Seconds()
	if err := p.passed(ctx, c, s.Foos); err != nil {
		return nil, err
	}
	if err := p.rest(ctx, ours); err != nil {
		return nil, err
	}
	if s.Heap, err = c.collectGarbage(); err != nil {
		return nil, err
	}
	if s.RSS, s.Peak, err = measure.Memory(c.PID); err != nil {
		return nil, err
	}
	replicas := int32(2 - before%2)
	s.Change, err = p.measure(ctx, ours, c, o, func() error {
		return p.scaleFoos(ctx, namespace, "foo", s.Foos, replicas, o, load{count: min(changes, s.Foos), underWay: paced})
	})
	if err != nil {
		return nil, err
	}
	p.bench.say("  ready after %.1f s, %.1f MB of heap, %.1f MB of memory, %.2f ms a change", s.Ready, megabytes(s.Heap), megabytes(s.RSS), s.change())
	return s, nil
}

// passed waits until every Foo has been looked at since the start of the operator, for so long that each of them can be written too. It
// does not ask so often that it would be measured.
func (p *plane) passed(ctx context.Context, c *controller, count int) error {
	limit := 2*time.Minute + time.Duration(count)*10*time.Millisecond
	for begun := time.Now(); ; {
		if err := c.Alive(); err != nil {
			return err
		}
		passes, err := c.metrics.Passes(p.token, "foo")
		if err == nil && passes >= count {
			return nil
		}
		if time.Since(begun) > limit {
			return fmt.Errorf("after %s, %d of %d Foos have been looked at: %w", time.Since(begun), passes, count, err)
		}
		if err := pause(ctx, 250*time.Millisecond); err != nil {
			return err
		}
	}
}

// measureLiftedSizes measures the memory of the sample-controller. It looks at all namespaces, so the floor makes more Foos each time.
func (p *plane) measureLiftedSizes(ctx context.Context, f *found) error {
	namespace, err := p.namespace(ctx)
	if err != nil {
		return err
	}
	there := 0
	for i, count := range f.Scale.Sizes {
		p.bench.say("%s, with %d Foos", lifted.name, count)
		if err := p.add(ctx, lowest, namespace, fmt.Sprintf("foo%d", i), count-there); err != nil {
			return err
		}
		there = count
		begun := time.Now()
		c, err := p.startReady(ctx, lifted, []string{"GODEBUG=gctrace=1"})
		if err != nil {
			return err
		}
		s := &size{Arm: lifted.name, Foos: count, Ready: time.Since(begun).Seconds()}
		// It is never at rest with many Foos: what it has while it works is what it has.
		if err := p.rest(ctx, lifted); err != nil {
			c.Stop()
			return err
		}
		var heapErr, memoryErr error
		s.Heap, heapErr = c.tracedHeap()
		s.RSS, s.Peak, memoryErr = measure.Memory(c.PID)
		c.Stop()
		if err := errors.Join(heapErr, memoryErr); err != nil {
			return err
		}
		f.Sizes = append(f.Sizes, s)
	}
	return p.clear(ctx, namespace)
}

var liveHeap = regexp.MustCompile(`# HeapAlloc = ([0-9]+)`)

// collectGarbage has a controller that serves profiles collect its garbage, and returns how many bytes are left.
func (c *controller) collectGarbage() (int64, error) {
	response, err := http.Get(c.profiles + "/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	profile, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	match := liveHeap.FindSubmatch(profile)
	if match == nil {
		return 0, errors.New("the profile of the heap does not tell its size")
	}
	return strconv.ParseInt(string(match[1]), 10, 64)
}

// Of a line of GODEBUG=gctrace=1 the third number of megabytes is what is alive.
var tracedGarbage = regexp.MustCompile(`(?m)^gc .* [0-9]+->[0-9]+->([0-9]+) MB`)

// tracedHeap returns how many bytes were left at the last garbage collection of a controller that traces them, in whole MiB.
func (c *controller) tracedHeap() (int64, error) {
	logged, err := os.ReadFile(c.Log)
	if err != nil {
		return 0, err
	}
	all := tracedGarbage.FindAllSubmatch(logged, -1)
	if len(all) == 0 {
		return 0, errors.New("no garbage was collected")
	}
	whole, err := strconv.ParseInt(string(all[len(all)-1][1]), 10, 64)
	return whole << 20, err
}

func megabytes(bytes int64) float64 { return float64(bytes) / 1e6 }
