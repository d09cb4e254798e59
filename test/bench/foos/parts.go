package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/testenv"
)

// part is what the operator spends CPU time on.
type part struct {
	What  string  `json:"what"`
	Share float64 `json:"share"` // of the samples of a profile
}

// parts are those that there are, by what is in the name of one of the functions that a sample is of. A sample belongs to the first that fits.
var parts = []struct {
	what string
	of   []string
}{
	{"collecting garbage, whoever has made it", []string{" runtime.gc", " runtime.bgsweep", " runtime.bgscavenge"}},
	{"applying the Deployment", []string{"internal/owned.Apply"}},
	{"writing the status", []string{"internal/status.("}},
	{deciding, []string{"internal/controller/foo.(*Reconciler)"}},
	{"sending events", []string{"client-go/tools/events.", "client-go/tools/record."}},
	{"reading watches", []string{"watch.(*StreamWatcher).receive"}},
	{"keeping caches", []string{"client-go/tools/cache."}},
	{"connections: HTTP/2 and TLS", []string{"net/http", "crypto/tls."}},
	{"the queue of the controller", []string{"controller-runtime/pkg/"}},
	{"the Go runtime: goroutines and memory", []string{" runtime."}},
}

// partsSection is what says why the CPU time is what it is.
const partsSection = "parts"

const (
	deciding  = "passes, but for their writes"
	elsewhere = "anything else"
)

// measureParts takes a profile of the operator while many Foos are made at once.
func measureParts(ctx context.Context, p *plane, f *found) error {
	f.Parts = nil
	namespace, err := p.namespace(ctx)
	if err != nil {
		return err
	}
	o := p.observe(ctx, namespace)
	defer o.stop()
	c, err := p.startReady(ctx, ours, nil)
	if err != nil {
		return err
	}
	defer c.Stop()
	if err := p.makeFoos(ctx, namespace, "warm", o, load{count: ours.warmUp, underWay: makers}); err != nil {
		return err
	}
	p.bench.say("a profile while %d Foos are made", f.Scale.Burst)
	path, saved := filepath.Join(p.bench.work, "parts.pprof"), make(chan error, 1)
	go func() { saved <- saveProfile(http.DefaultClient, c.profiles, path) }()
	makeErr := p.makeFoos(ctx, namespace, "foo", o, load{count: f.Scale.Burst})
	if err := errors.Join(makeErr, <-saved); err != nil {
		return err
	}
	traces, err := golang(ctx, testenv.Root(), "tool", "pprof", "-traces", path)
	if err != nil {
		return err
	}
	f.Parts, err = partsOf(traces)
	return err
}

// partsOf returns the parts of what "go tool pprof -traces" prints.
func partsOf(traces string) ([]*part, error) {
	spent, all := map[string]time.Duration{}, time.Duration(0)
	for trace := range strings.SplitSeq(traces, "-----------+-") {
		_, stack, _ := strings.Cut(trace, "\n")
		taken, err := time.ParseDuration(firstWord(stack))
		if err != nil {
			continue // the header
		}
		spent[partOf(stack)] += taken
		all += taken
	}
	if all == 0 {
		return nil, errors.New("there is nothing in the profile")
	}
	var found []*part
	for _, p := range parts {
		found = append(found, &part{p.what, spent[p.what].Seconds() / all.Seconds()})
	}
	return append(found, &part{elsewhere, spent[elsewhere].Seconds() / all.Seconds()}), nil
}

// partOf returns the part that a stack belongs to.
func partOf(stack string) string {
	for _, p := range parts {
		if slices.ContainsFunc(p.of, func(name string) bool { return strings.Contains(stack, name) }) {
			return p.what
		}
	}
	return elsewhere
}

func firstWord(text string) string {
	words := strings.Fields(text)
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

// partsSection tells what the operator's CPU time is spent on.
func (f *found) partsSection() *proof.Section {
	if len(f.Parts) == 0 {
		return nil
	}
	table := proof.Table{Columns: []string{"spent on", "share of the operator's CPU time"}}
	for _, p := range f.Parts {
		table.Rows = append(table.Rows, []string{p.What, fmt.Sprintf("%.3f", p.Share)})
	}
	return &proof.Section{
		Title: "What the operator's CPU time is spent on",
		Text: []string{fmt.Sprintf("One burst more of %d Foos, with a profile of its first %d seconds. What belongs to two rows is in the first of them.",
			f.Scale.Burst, profileSeconds)},
		Tables: []proof.Table{table},
	}
}

// withoutDeciding tells how little of the operator's CPU time goes to what it decides; nothing if that was not measured.
func (f *found) withoutDeciding() string {
	i := slices.IndexFunc(f.Parts, func(p *part) bool { return p.What == deciding })
	if i < 0 || !f.has(partsSection) {
		return ""
	}
	return fmt.Sprintf("; of the operator's own, %.2f are spent on %s, and all else on making requests, watches, caches and garbage", f.Parts[i].Share, deciding)
}
