package sequences

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/testenv"
)

var proofDir = flag.String("proof", "", "a `directory` for a page of the results")

// tally counts what all tests have done.
var tally = struct {
	sequences  int
	hasFailed  bool // the last sequence
	actions    map[string]int
	found      int // cases of TestFound
	foundAgain []string
	managers   int
	defects    []string // in the logs of the managers
	began      time.Time
}{actions: map[string]int{}, began: time.Now()}

// TestMain writes a page of the results in the end, if a directory is named and the page is complete.
func TestMain(m *testing.M) {
	code := m.Run()
	if *proofDir != "" {
		if err := writePage(*proofDir, code != 0); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func writePage(directory string, hasFailed bool) error {
	operator, err := proof.OperatorOf(testenv.Root(), os.Getenv("MANAGER"))
	if err != nil {
		return err
	}
	page := newPage(operator)
	isMissed := slices.ContainsFunc(page.Claims, func(claim proof.Claim) bool { return claim.Verdict == proof.Missed })
	switch {
	case tally.sequences == 0 || tally.found == 0:
		return errors.New("no page: only a part of the tests has run")
	case hasFailed != isMissed:
		return errors.New("no page: a failure is not on it")
	}
	return errors.Join(page.Print(os.Stdout), page.Write(directory))
}

// newPage returns the report for people.
func newPage(operator string) *proof.Page {
	actions := proof.Table{Columns: []string{"action", "count"}}
	for _, action := range slices.Sorted(maps.Keys(tally.actions)) {
		actions.Rows = append(actions.Rows, []string{action, fmt.Sprint(tally.actions[action])})
	}
	claim := func(what string, found, of int, notes ...string) proof.Claim {
		return proof.Claim{What: what, Bar: "0", Found: fmt.Sprintf("%d of %d", found, of),
			Verdict: proof.Judge(found == 0), Note: strings.Join(notes, "; ")}
	}
	failed := 0
	if tally.hasFailed {
		failed = 1 // the first failure ends the test
	}
	return &proof.Page{
		Name:  "sequences",
		Title: "Random changes",
		Text: []string{"Two Foos, a Memcached and a CronJob of one namespace are created, changed, deleted and recreated at " +
			"random. Their children are damaged, other clients take their names, and the operator is killed and started. In " +
			"the end, the namespace is compared with one in which the same resources are created in their last state, and " +
			"nothing more may be written in it. What has failed once is a test of its own. Each run draws other sequences. " +
			"Jobs, failing requests, and what happens before everything settles are in [the scenarios](reliability.md). " +
			"`make reliability` writes this page; test/README.md describes it."},
		Settings: []proof.Setting{
			proof.OperatorSetting(operator),
			{Name: "begun", Value: tally.began.UTC().Format("2006-01-02 15:04 MST")},
			{Name: "CPUs", Value: fmt.Sprint(runtime.NumCPU())},
			{Name: "time", Value: fmt.Sprintf("%.0f s", time.Since(tally.began).Seconds())},
		},
		Claims: []proof.Claim{
			claim("sequences that end otherwise than resources without a past, or with a write after everything has settled",
				failed, tally.sequences),
			claim("past failures that occur again", len(tally.foundAgain), tally.found, tally.foundAgain...),
			claim("panics and data races in the logs of all managers", len(tally.defects), tally.managers, tally.defects...),
		},
		Sections: []proof.Section{{Title: "Actions", Tables: []proof.Table{actions}}},
	}
}

// Each failure is a missed claim.
func TestPage(t *testing.T) {
	defer func(before []string) { tally.foundAgain = before }(tally.foundAgain)
	tally.foundAgain = []string{"it"}
	for i, claim := range newPage("0123456789ab").Claims {
		if isMissed := claim.Verdict == proof.Missed; isMissed != (i == 1) {
			t.Errorf("%+v", claim)
		}
	}
}
