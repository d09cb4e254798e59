package sequences

import (
	"flag"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/testenv"
)

var proofDir = flag.String("proof", "", "a `directory` for a page of what was played")

// tally is what was played.
type tally struct {
	sequences int
	actions   map[string]int
	began     time.Time
}

func newTally() *tally {
	return &tally{actions: map[string]int{}, began: time.Now()}
}

// write writes a page of what was played, if it is wanted. It is for the end of a test.
func (y *tally) write(t *testing.T) {
	if *proofDir == "" {
		return
	}
	operator, err := proof.OperatorOf(testenv.Root(), program())
	if err == nil {
		err = y.page(operator, t.Failed()).Write(*proofDir)
	}
	if err != nil {
		t.Error(err)
	}
}

// page returns the report for people.
func (y *tally) page(operator string, hasFailed bool) *proof.Page {
	actions := proof.Table{Columns: []string{"action", "played"}}
	all := 0
	for _, action := range slices.Sorted(maps.Keys(y.actions)) {
		actions.Rows = append(actions.Rows, []string{action, fmt.Sprint(y.actions[action])})
		all += y.actions[action]
	}
	claim := proof.Claim{What: "sequences with another end than that of resources without a past", Bar: "0", Found: fmt.Sprintf("0 of %d", y.sequences), Verdict: proof.Met}
	if hasFailed {
		claim.Found, claim.Verdict, claim.Note = "1", proof.Missed, "with the first, nothing but that is played, made shorter"
	}
	return &proof.Page{
		Name:  "sequences",
		Title: "What comes of any history",
		Text: []string{"What happens to two Foos, a Memcached and a CronJob of one namespace is chosen by chance: they are made, changed, deleted and made again, " +
			"their children are harmed, their names are taken by others, the operator is killed and started. In the end, the namespace is compared with one " +
			"in which the same resources are made in their last state, and have no past. What has gone wrong once is a test of its own. `make reliability` makes this page; test/README.md tells how."},
		Settings: []proof.Setting{
			{Name: "operator", Value: operator},
			{Name: "CPUs", Value: fmt.Sprint(runtime.NumCPU())},
			{Name: "time", Value: fmt.Sprintf("%.0f s", time.Since(y.began).Seconds())},
		},
		Claims: []proof.Claim{claim},
		Sections: []proof.Section{{Title: "Actions", Text: []string{fmt.Sprintf("%d actions in %d sequences.", all, y.sequences)},
			Tables: []proof.Table{actions}}},
		Data: map[string]any{"sequences": y.sequences, "actions": y.actions, "failed": hasFailed},
	}
}

// What has gone wrong is not told as if it had not.
func TestPage(t *testing.T) {
	played := &tally{sequences: 3, actions: map[string]int{"put": 5, "kill": 2}}
	for hasFailed, verdict := range map[bool]proof.Verdict{false: proof.Met, true: proof.Missed} {
		page := played.page("0123456789ab", hasFailed)
		if page.Claims[0].Verdict != verdict || page.Sections[0].Text[0] != "7 actions in 3 sequences." || len(page.Sections[0].Tables[0].Rows) != 2 {
			t.Errorf("%+v", page)
		}
	}
}
