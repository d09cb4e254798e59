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

var proofDir = flag.String("proof", "", "a `directory` for a page of what was played")

// tally is what was played, by all tests.
type tally struct {
	sequences int
	hasFailed bool // the last sequence has
	actions   map[string]int
	// found is how many things were tried that had gone wrong once; foundAgain are those that did again.
	found      int
	foundAgain []string
	// managers is how many have worked; defects are what their logs must not have.
	managers int
	defects  []string
	began    time.Time
}

var played = &tally{actions: map[string]int{}, began: time.Now()}

// TestMain writes a page of what was played when all is over, if it is wanted.
func TestMain(m *testing.M) {
	code := m.Run()
	if *proofDir != "" {
		operator, err := proof.OperatorOf(testenv.Root(), os.Getenv("MANAGER"))
		if err == nil {
			err = errors.Join(played.page(operator).Print(os.Stdout), played.write(*proofDir, operator, code != 0))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// write writes a page of what was played with an operator to a directory. It is an error if a part of it was not
// played, or if something has failed that the page would not tell of.
func (y *tally) write(dir, operator string, hasFailed bool) error {
	page := y.page(operator)
	isMissed := slices.ContainsFunc(page.Claims, func(claim proof.Claim) bool { return claim.Verdict == proof.Missed })
	switch {
	case y.sequences == 0 || y.found == 0:
		return errors.New("no page: a part of the tests was not played")
	case hasFailed && !isMissed:
		return errors.New("no page: what has failed is nothing that it tells of")
	}
	return page.Write(dir)
}

// page returns the report for people.
func (y *tally) page(operator string) *proof.Page {
	actions := proof.Table{Columns: []string{"action", "played"}}
	all := 0
	for _, action := range slices.Sorted(maps.Keys(y.actions)) {
		actions.Rows = append(actions.Rows, []string{action, fmt.Sprint(y.actions[action])})
		all += y.actions[action]
	}
	sequences := proof.Claim{What: "sequences with another end than that of resources without a past, or with a write " +
		"when all was at rest", Bar: "0",
		Found: fmt.Sprintf("0 of %d", y.sequences), Verdict: proof.Judge(!y.hasFailed)}
	if y.hasFailed {
		sequences.Found, sequences.Note = "1", "with the first, nothing but that is played, made shorter"
	}
	again := proof.Claim{What: "what went wrong once, and does again", Bar: "0",
		Found:   fmt.Sprintf("%d of %d", len(y.foundAgain), y.found),
		Verdict: proof.Judge(len(y.foundAgain) == 0), Note: strings.Join(y.foundAgain, "; ")}
	defects := proof.Claim{What: "panics and data races in the logs of all managers", Bar: "0",
		Found:   fmt.Sprintf("%d in %d", len(y.defects), y.managers),
		Verdict: proof.Judge(len(y.defects) == 0), Note: strings.Join(y.defects, "; ")}
	return &proof.Page{
		Name:  "sequences",
		Title: "What comes of any history",
		Text: []string{"What happens to two Foos, a Memcached and a CronJob of one namespace is chosen by chance: they are " +
			"made, changed, deleted and made again, " +
			"their children are harmed, their names are taken by others, the operator is killed and started. In the end, the " +
			"namespace is compared with one " +
			"in which the same resources are made in their last state, and have no past, and nothing may be written in it " +
			"any more. " +
			"What has gone wrong once is a test of its own. Each time, other sequences are played. Jobs, requests that go " +
			"wrong, and what happens before all is at rest are for [the scenarios](reliability.md). `make reliability` makes this page; test/README.md tells how."},
		Settings: []proof.Setting{
			proof.OperatorSetting(operator),
			{Name: "begun", Value: y.began.UTC().Format("2006-01-02 15:04 MST")},
			{Name: "CPUs", Value: fmt.Sprint(runtime.NumCPU())},
			{Name: "time", Value: fmt.Sprintf("%.0f s", time.Since(y.began).Seconds())},
		},
		Claims: []proof.Claim{sequences, again, defects},
		Sections: []proof.Section{{Title: "Actions", Text: []string{fmt.Sprintf("%d actions in %d sequences.", all,
			y.sequences)},
			Tables: []proof.Table{actions}}},
	}
}

// What has gone wrong is not told as if it had not, and there is no page of a part, nor of what has failed otherwise.
func TestPage(t *testing.T) {
	for name, test := range map[string]struct {
		change               func(*tally)
		missed               int // which claim; -1 for none
		hasFailed, isWritten bool
	}{
		"all is well":              {func(*tally) {}, -1, false, true},
		"a sequence":               {func(y *tally) { y.hasFailed = true }, 0, true, true},
		"what was found":           {func(y *tally) { y.foundAgain = []string{"it"} }, 1, true, true},
		"a log of a manager":       {func(y *tally) { y.defects = []string{"panic"} }, 2, true, true},
		"no sequence":              {func(y *tally) { y.sequences = 0 }, -1, false, false},
		"nothing that was found":   {func(y *tally) { y.found = 0 }, -1, false, false},
		"a failure of the machine": {func(*tally) {}, -1, true, false},
	} {
		y := &tally{sequences: 3, actions: map[string]int{"put": 5, "kill": 2}, found: 1, managers: 4}
		test.change(y)
		for i, claim := range y.page("0123456789ab").Claims {
			if isMissed := claim.Verdict == proof.Missed; isMissed != (i == test.missed) {
				t.Errorf("%s: %+v", name, claim)
			}
		}
		if err := y.write(t.TempDir(), "0123456789ab", test.hasFailed); (err == nil) != test.isWritten {
			t.Errorf("%s: %v", name, err)
		}
	}
}
