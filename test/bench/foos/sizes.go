package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/testenv"
)

// size is what an operator costs with a number of Foos.
type size struct {
	Program string `json:"program"`
	Foos    int    `json:"foos"`
	// Ready is how many seconds after its start its caches were filled.
	Ready float64 `json:"ready"`
	// Heap is the live heap after a garbage collection, RSS the memory of the process then, and Peak the most that it had.
	Heap int64 `json:"heap"`
	RSS  int64 `json:"rss"`
	Peak int64 `json:"peak"`
	// Change is what it costs to scale Foos.
	Change *batch `json:"change"`
}

// change returns the CPU milliseconds of the controller for a change.
func (s *size) change() float64 { return s.Change.controller() }

// measureSizes measures memory, and the cost of a change, with different numbers of Foos. Each number has a namespace,
// and an operator watches only that, so that sizes can be measured in turn.
func measureSizes(ctx context.Context, p *plane, f *found) error {
	namespaces, measured := map[int]string{}, map[int]int{}
	for _, count := range f.Scale.Sizes {
		var err error
		if namespaces[count], err = p.populate(ctx, count); err != nil {
			return err
		}
	}
	for round := range f.Scale.Rounds {
		for _, count := range order(round, f.Scale.Sizes) {
			for _, a := range order(round, p.bench.operators()) {
				replicas := int32(2 - measured[count]%2) // Foos are scaled up and down in turn
				s, err := p.measureSize(ctx, a, namespaces[count], count, f.Scale.Changes, replicas)
				if err != nil {
					return err
				}
				f.Sizes = append(f.Sizes, s)
				measured[count]++
			}
		}
	}
	return nil
}

// populate has the operator reconcile new Foos in a new namespace, and stops it when it is at rest.
func (p *plane) populate(ctx context.Context, count int) (namespace string, err error) {
	measure.Log("%s reconciles %d Foos", operator.name, count)
	if namespace, err = p.namespace(ctx); err != nil {
		return "", err
	}
	o := p.observe(ctx, namespace)
	defer o.stop()
	c, err := p.startReady(ctx, operator, []string{"WATCH_NAMESPACE=" + namespace})
	if err != nil {
		return "", err
	}
	defer c.Stop()
	if err := p.createFoos(ctx, namespace, "foo", o, load{count: count, pending: 20 * paced}); err != nil {
		return "", err
	}
	return namespace, p.rest(ctx, operator)
}

// measureSize measures an operator with the Foos of one namespace.
func (p *plane) measureSize(ctx context.Context, a program, namespace string, foos, changes int,
	replicas int32) (*size, error) {
	measure.Log("%s: with %d Foos", a.name, foos)
	o := p.observe(ctx, namespace)
	defer o.stop()
	begun := time.Now()
	c, err := p.startReady(ctx, a, []string{"WATCH_NAMESPACE=" + namespace})
	if err != nil {
		return nil, err
	}
	defer c.Stop()
	s := &size{Program: a.name, Foos: foos, Ready: time.Since(begun).Seconds()}
	if err := p.passed(ctx, c, foos); err != nil {
		return nil, err
	}
	if err := p.rest(ctx, a); err != nil {
		return nil, err
	}
	if s.Heap, err = c.collectGarbage(); err != nil {
		return nil, err
	}
	if s.RSS, s.Peak, err = measure.Memory(c.PID); err != nil {
		return nil, err
	}
	s.Change, err = p.measure(ctx, a, c, o, func() error {
		return p.scaleFoos(ctx, namespace, foos, replicas, o, load{count: min(changes, foos), pending: paced})
	})
	if err != nil {
		return nil, err
	}
	measure.Log("  ready after %.1f s, heap %.1f MB, memory %.1f MB, %.2f ms a change", s.Ready, megabytes(s.Heap),
		megabytes(s.RSS), s.change())
	return s, nil
}

// passes returns how many passes a controller has made for Foos; 0 for one without metrics.
func (p *plane) passes(c *controller) (int, error) {
	if c.metrics == nil {
		return 0, nil
	}
	return c.metrics.Passes(p.token, "foo")
}

// passed waits until every Foo has been reconciled since the start of an operator, long enough for each of them to be
// written. It polls so rarely that this does not show in the results.
func (p *plane) passed(ctx context.Context, c *controller, count int) error {
	if c.metrics == nil {
		return nil
	}
	limit := 2*time.Minute + time.Duration(count)*10*time.Millisecond
	passes := 0
	err := wait.PollUntilContextTimeout(ctx, 250*time.Millisecond, limit, true, func(context.Context) (bool, error) {
		if now, err := p.passes(c); err == nil {
			passes = now
		}
		return passes >= count, c.Alive()
	})
	if err != nil {
		return fmt.Errorf("%d of %d Foos were reconciled: %w", passes, count, err)
	}
	return nil
}

var liveHeap = regexp.MustCompile(`# HeapAlloc = ([0-9]+)`)

// collectGarbage has an operator collect its garbage, and returns the size of the heap that is left.
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
		return 0, errors.New("the heap profile does not have the size of the heap")
	}
	return strconv.ParseInt(string(match[1]), 10, 64)
}

func megabytes(bytes int64) float64 { return float64(bytes) / 1e6 }

// memoryLimit returns the memory limit of the operator in config/manager. The benchmark runs it without a limit.
func memoryLimit() (resource.Quantity, error) {
	path := filepath.Join(testenv.Root(), "config", "manager", "manager.yaml")
	content, err := os.ReadFile(path)
	if err != nil {
		return resource.Quantity{}, err
	}
	for manifest := range bytes.SplitSeq(content, []byte("\n---\n")) {
		var deployment appsv1.Deployment
		if err := yaml.Unmarshal(manifest, &deployment); err != nil {
			return resource.Quantity{}, err
		}
		for _, container := range deployment.Spec.Template.Spec.Containers {
			if limit := container.Resources.Limits.Memory(); !limit.IsZero() {
				return *limit, nil
			}
		}
	}
	return resource.Quantity{}, fmt.Errorf("no container in %s has a memory limit", path)
}
