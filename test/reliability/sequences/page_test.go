package sequences

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/testenv"
)

var proofDir = flag.String("proof", "", "a `directory` for a page of the results")

// tally counts the sequences, failures and managers of all tests.
var tally = struct {
	sequences, found, managers int // found are past failures
	actions                    map[string]int
	failure                    string // of the last sequence that has failed, which is minimal
	failed                     []string
}{actions: map[string]int{}}

// thisRun is the run of all tests.
var thisRun *proof.Run

// fail records that a test has failed.
func fail(t *testing.T, what string) {
	if t.Failed() {
		tally.failed = append(tally.failed, what)
	}
}

// seedFlag is rapid's. If it is 0, rapid draws a seed, and prints it only if a test fails.
const seedFlag = "rapid.seed"

// TestMain chooses a seed, unless there is one, and writes a page of the results in the end, if a directory is named
// and all tests have run.
func TestMain(m *testing.M) {
	flag.Parse()
	if seed := flag.Lookup(seedFlag).Value; seed.String() == "0" {
		if err := seed.Set(fmt.Sprint(time.Now().UnixNano())); err != nil {
			panic(err)
		}
	}
	thisRun = proof.Begin(testenv.Root(), os.Getenv("MANAGER"))
	code := m.Run()
	var err error
	for _, failed := range tally.failed {
		err = errors.Join(err, thisRun.Record("sequences", failed))
	}
	if err != nil {
		panic(err)
	}
	if *proofDir != "" {
		if err := writePage(*proofDir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// fewest is how many sequences a whole run has, unless one fails.
const fewest = 100

func writePage(directory string) error {
	thisRun.End()
	if tally.sequences < fewest && tally.failure == "" || tally.found == 0 {
		return fmt.Errorf("no page: that was not a whole run, which needs all tests and -rapid.checks=%d", fewest)
	}
	page := newPage(thisRun)
	return errors.Join(page.Print(os.Stdout), thisRun.Write(page, directory))
}

// newPage returns the report as a page.
func newPage(run *proof.Run) *proof.Page {
	actions := proof.Table{Columns: []string{"action", "count"}}
	for _, action := range slices.Sorted(maps.Keys(tally.actions)) {
		actions.Rows = append(actions.Rows, []string{action, fmt.Sprint(tally.actions[action])})
	}
	return &proof.Page{
		Name:  "sequences",
		Title: "Random changes",
		Text: []string{"Two Foos, a Memcached of each workload and a CronJob of one namespace are created, changed, " +
			"deleted and recreated at random. Their children are damaged, other clients take their names, and " +
			"the operator is killed and started. In the end, the namespace is compared with one in which the " +
			"same resources are created in their last state, and nothing more may be written in it. What has " +
			"failed once is a test of its own. Each run draws other sequences. Jobs, failing requests, and " +
			"what happens before everything settles are in [the scenarios](reliability.md). `make reliability` " +
			"writes this page; test/reliability/README.md describes it."},
		Settings: append(run.Settings(),
			proof.Setting{Name: "seed", Value: flag.Lookup(seedFlag).Value.String()}),
		Claims: []proof.Claim{{
			What: "sequences that end otherwise than resources without a past, or with a write after everything has settled; " +
				"past failures that occur again; panics and data races in the logs of the managers",
			Bar: "0",
			Found: fmt.Sprintf("%d of %d sequences, %d past failures and %d managers", len(tally.failed), tally.sequences,
				tally.found, tally.managers),
			Verdict: proof.Judge(len(tally.failed) == 0), Note: strings.Join(tally.failed, "; "),
		}, run.Claim()},
		Sections: []proof.Section{{Title: "Actions", Tables: []proof.Table{actions}}},
	}
}

func TestPageShowsFailures(t *testing.T) {
	for _, failed := range [][]string{nil, {"a sequence"}} {
		tally.failed = failed
		if isMet := newPage(&proof.Run{}).Claims[0].Verdict == proof.Met; isMet != (failed == nil) {
			t.Errorf("%v: %v", failed, isMet)
		}
	}
	tally.failed = nil
}
