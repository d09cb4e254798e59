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
	"github.com/example/memcached-operator/test/testenv"
)

// lab is what mutants are tried in.
type lab struct {
	dir string
	// world is that of the transitions, one for all mutants; nil until it is needed.
	world *schema.World
	// faults is the program of the suite with the faults; empty until it is needed.
	faults string
}

// suites try a part of themselves with a manager, and return what they have found.
var suites = map[string]func(ctx context.Context, l *lab, program, part string) ([]string, error){
	"schema":   transitions,
	"scenario": scenarios,
	"refusals": refusals,
	"faults":   faults,
}

// buildFaults builds the suite with the faults, once.
func (l *lab) buildFaults(ctx context.Context) error {
	if l.faults != "" {
		return nil
	}
	program := filepath.Join(l.dir, "reliability")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./test/reliability")
	build.Dir = testenv.Root()
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the suite with the faults: %w\n%s", err, out)
	}
	l.faults = program
	return nil
}

func (l *lab) close() error {
	if l.world == nil {
		return nil
	}
	return l.world.Stop()
}

// transitions tries the fields that match.
func transitions(ctx context.Context, l *lab, program, part string) (found []string, err error) {
	if l.world == nil {
		if l.world, err = schema.Start(ctx); err != nil {
			return nil, err
		}
	}
	if err := l.world.Use(ctx, program); err != nil {
		return nil, err
	}
	report, err := l.world.Try(ctx, schema.Options{Only: regexp.MustCompile(part), Workers: 8, Patience: patienceOf(part), IsHasty: true})
	if err != nil {
		return nil, err
	}
	if report.Tried == 0 {
		return nil, fmt.Errorf("no field matches %q", part)
	}
	return report.Violations, l.world.Clear(ctx)
}

// patienceOf: a history takes a minute, anything else a moment. Whoever is late for longer is wrong.
func patienceOf(part string) time.Duration {
	if regexp.MustCompile("HistoryLimit").MatchString(part) {
		return 90 * time.Second
	}
	return 15 * time.Second
}

// scenarios plays the scenarios that match, without faults. Nothing keeps the operator from its end then.
func scenarios(ctx context.Context, l *lab, program, part string) ([]string, error) {
	return l.play(ctx, program, part, "none", "--patience=30s")
}

// refusals plays the scenarios that match with every sort of write refused for a while.
func refusals(ctx context.Context, l *lab, program, part string) ([]string, error) {
	return l.play(ctx, program, part, "refusals", "--patience=45s")
}

// faults plays the scenarios that match, without faults and with one at every write.
func faults(ctx context.Context, l *lab, program, part string) ([]string, error) {
	return l.play(ctx, program, part, "singles")
}

// play plays a campaign of the suite with the faults until something is found.
func (l *lab) play(ctx context.Context, program, part, campaign string, flags ...string) (found []string, err error) {
	if err := l.buildFaults(ctx); err != nil {
		return nil, err
	}
	file := filepath.Join(l.dir, "faults.json")
	_ = os.Remove(file) // there is none the first time
	flags = append(flags, "--hasty", "--manager="+program, "--scenario="+part, "--campaign="+campaign, "--json="+file, "--evidence="+filepath.Join(l.dir, "evidence"))
	suite := exec.CommandContext(ctx, l.faults, flags...)
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
				Findings         []struct{ Oracle, Text string }
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
			for _, finding := range plan.Findings {
				found = append(found, fmt.Sprintf("%s: %s (%s %s)", finding.Oracle, finding.Text, plan.Scenario, plan.Faults))
			}
		}
	}
	if plans == 0 {
		return nil, fmt.Errorf("no scenario matches %q: %w\n%s", part, runErr, out)
	}
	return slices.Compact(found), nil
}
