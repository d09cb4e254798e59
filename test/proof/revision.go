package proof

import (
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// Operator returns the revision of a repository that is tested, and whether files other than documents differ from it.
func Operator(root string) (string, error) {
	var results []string
	commands := [][]string{{"rev-parse", "--short=12", "HEAD"}, {"status", "--porcelain", "--", ".", ":!docs"}}
	for _, arguments := range commands {
		out, err := exec.Command("git", append([]string{"-C", root}, arguments...)...).Output()
		if err != nil {
			return "", fmt.Errorf("git %s: %w", strings.Join(arguments, " "), err)
		}
		results = append(results, strings.TrimSpace(string(out)))
	}
	if results[1] != "" {
		return results[0] + ", with uncommitted changes", nil
	}
	return results[0], nil
}

// Run is one run of a suite, from which one page comes.
type Run struct {
	Revision string // as Operator returns it; "another" if a program replaces the operator of the tree
	Begun    time.Time
	Ended    time.Time

	root, program string
}

// Begin begins a run of the operator in a repository, or of a program if its path is not empty.
func Begin(root, program string) (*Run, error) {
	r := &Run{Revision: "another", Begun: time.Now(), root: root, program: program}
	var err error
	if program == "" {
		r.Revision, err = Operator(root)
	}
	return r, err
}

// End ends a run. It is an error if the repository has changed during the run.
func (r *Run) End() error {
	r.Ended = time.Now()
	if r.program != "" {
		return nil
	}
	switch revision, err := Operator(r.root); {
	case err != nil:
		return err
	case revision != r.Revision:
		return fmt.Errorf("no page: the run began with %s and ended with %s", r.Revision, revision)
	}
	return nil
}

func (r *Run) minutes() float64 { return r.Ended.Sub(r.Begun).Minutes() }

// Settings returns the settings of every page.
func (r *Run) Settings() []Setting {
	return []Setting{{"revision", r.Revision}, {"CPUs", fmt.Sprint(runtime.NumCPU())},
		{"begun", r.Begun.UTC().Format("2006-01-02 15:04 MST")}, {"minutes", fmt.Sprintf("%.0f", r.minutes())}}
}

// mostMinutes is how long a run may take on 2 CPUs.
const mostMinutes = 120

// Claim claims that a run was not too long.
func (r *Run) Claim() Claim {
	return Claim{What: "minutes of the run that made this page", Bar: fmt.Sprint(mostMinutes),
		Found: fmt.Sprintf("%.0f", r.minutes()), Verdict: Judge(r.minutes() <= mostMinutes)}
}
