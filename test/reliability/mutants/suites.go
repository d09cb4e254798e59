package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/example/memcached-operator/test/reliability/schema"
)

// lab is what mutants are tried in.
type lab struct {
	dir string
	// world is that of the transitions, one for all mutants; nil until it is needed.
	world *schema.World
	// root is the repository that the suite with the faults is built of: with another config, if the mutant has one.
	root string
	// faults are the programs of that suite, by their root.
	faults map[string]string
}

// finding is something that a suite has found.
type finding struct {
	Oracle string // by which
	Text   string
}

func (f finding) String() string { return f.Oracle + ": " + f.Text }

// suite tries a part of itself with a manager, and returns what it has found.
type suite func(ctx context.Context, l *lab, program, part string) ([]finding, error)

// suites are by the name that killers begin with. All but the first play campaigns of the suite with the faults.
var suites = map[string]suite{
	"schema":   transitions,
	"scenario": campaign("none", "--patience=30s"), // no faults: nothing keeps the operator from its end
	"faults":   campaign("singles"),
	"refusals": campaign("refusals", "--patience=45s"),
	"storms":   campaign("storms", "--patience=45s"),
	"leaders":  campaign("leaders", "--patience=45s"),
	"cut-off":  campaign("cut off", "--patience=45s"),
	"outages":  campaign("outages", "--patience=100s"),
	"rbac":     campaign("rbac"),
}

// campaign returns the suite that plays a campaign with the scenarios that match.
func campaign(name string, flags ...string) suite {
	return func(ctx context.Context, l *lab, program, part string) ([]finding, error) {
		return l.play(ctx, program, part, name, flags...)
	}
}

// buildFaults builds the suite with the faults, once for each root, and returns the path of the program. It installs
// what its root has in config.
func (l *lab) buildFaults(ctx context.Context) (string, error) {
	if program, ok := l.faults[l.root]; ok {
		return program, nil
	}
	program := filepath.Join(l.dir, fmt.Sprintf("reliability-%d", len(l.faults)))
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./test/reliability")
	build.Dir = l.root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the suite with the faults: %w\n%s", err, out)
	}
	l.faults[l.root] = program
	return program, nil
}

func (l *lab) close() error {
	if l.world == nil {
		return nil
	}
	return l.world.Stop()
}

// transitions tries the fields that match.
func transitions(ctx context.Context, l *lab, program, part string) (found []finding, err error) {
	if l.world == nil {
		if l.world, err = schema.Start(ctx); err != nil {
			return nil, err
		}
	}
	if err := l.world.Use(ctx, program); err != nil {
		return nil, err
	}
	report, err := l.world.Try(ctx, schema.Options{Only: regexp.MustCompile(part), Patience: patienceOf(part),
		IsHasty: true})
	if err != nil {
		return nil, err
	}
	if report.Tried == 0 {
		return nil, fmt.Errorf("no field matches %q", part)
	}
	for _, violation := range report.Violations {
		found = append(found, finding{"transitions", violation})
	}
	return found, l.world.Clear(ctx)
}

// patienceOf: a history takes a minute, anything else a moment. Whoever is late for longer is wrong.
func patienceOf(part string) time.Duration {
	if regexp.MustCompile("HistoryLimit").MatchString(part) {
		return 90 * time.Second
	}
	return 15 * time.Second
}

// play plays a campaign of the suite with the faults until something is found.
func (l *lab) play(ctx context.Context, program, part, campaign string, flags ...string) (found []finding, err error) {
	faults, err := l.buildFaults(ctx)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(l.dir, "faults.json")
	_ = os.Remove(file) // there is none the first time
	flags = append(flags, "--hasty", "--manager="+program, "--scenario="+part, "--campaign="+campaign, "--json="+file,
		"--evidence="+filepath.Join(l.dir, "evidence"))
	suite := exec.CommandContext(ctx, faults, flags...)
	suite.Cancel = func() error { return suite.Process.Signal(syscall.SIGTERM) } // so that it ends its control plane
	suite.WaitDelay = time.Minute
	out, runErr := suite.CombinedOutput()
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("the suite with the faults has told nothing: %w, %w\n%s", runErr, err, out)
	}
	var report struct {
		Campaigns []struct {
			Plans []struct {
				Scenario, Faults string
				Findings         []finding
			}
		}
	}
	if err := json.Unmarshal(content, &report); err != nil {
		return nil, err
	}
	plans := 0
	for _, campaign := range report.Campaigns {
		for _, plan := range campaign.Plans {
			plans++
			for _, f := range plan.Findings {
				f.Text = fmt.Sprintf("%s (%s %s)", f.Text, plan.Scenario, plan.Faults)
				found = append(found, f)
			}
		}
	}
	if plans == 0 {
		return nil, fmt.Errorf("no scenario matches %q: %w\n%s", part, runErr, out)
	}
	if len(found) == 0 && runErr != nil { // it could not go on, so it is not silent
		return nil, fmt.Errorf("the suite with the faults has ended before its end: %w\n%s", runErr, out)
	}
	return slices.Compact(found), nil
}
