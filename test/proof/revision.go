package proof

import (
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// revisionOf returns the revision of a repository, and whether files other than documents differ from it.
func revisionOf(root string) (string, error) {
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
	// Revision is that of revisionOf; "another" if another operator than that of the repository is tested, "unknown"
	// without Git.
	Revision string
	Begun    time.Time
	Ended    time.Time

	root string // of the repository; empty for another operator
}

// Begin begins a run of the operator in a repository, or of a program if its path is not empty. A program in the
// repository was built from it.
func Begin(root, program string) *Run {
	if program != "" && !isBelow(root, program) {
		return &Run{Revision: "another", Begun: time.Now()}
	}
	r := &Run{Revision: "unknown", Begun: time.Now(), root: root}
	if revision, err := revisionOf(root); err == nil {
		r.Revision = revision
	}
	return r
}

func isBelow(directory, path string) bool {
	relative, err := filepath.Rel(directory, path)
	return err == nil && filepath.IsLocal(relative)
}

// End ends a run.
func (r *Run) End() { r.Ended = time.Now() }

// Write writes the page of a finished run into a directory; none if that is empty. It is an error if the
// repository has changed since the run began.
func (r *Run) Write(page *Page, directory string) error {
	if directory == "" {
		return nil
	}
	if r.root != "" {
		revision, err := revisionOf(r.root)
		if err != nil {
			return err
		}
		if revision != r.Revision {
			return fmt.Errorf("no page: the run began with %s, and now there is %s", r.Revision, revision)
		}
	}
	return page.Write(directory)
}

// minutes returns how long the run was.
func (r *Run) minutes() float64 { return math.Round(r.Ended.Sub(r.Begun).Minutes()) }

// Settings returns the settings of every page.
func (r *Run) Settings() []Setting {
	return []Setting{{"revision", r.Revision}, {"CPUs", fmt.Sprint(runtime.NumCPU())},
		{"begun", r.Begun.UTC().Format("2006-01-02 15:04 MST")}, {"minutes", fmt.Sprint(r.minutes())}}
}

// A run may take mostMinutes on fewCPUs.
const (
	mostMinutes = 120
	fewCPUs     = 2
)

// Claim claims that a run was not too long.
func (r *Run) Claim() Claim {
	c := Claim{What: "minutes of the run that made this page", Bar: fmt.Sprintf("%d, on %d CPUs", mostMinutes, fewCPUs),
		Found: fmt.Sprint(r.minutes()), Verdict: Judge(r.minutes() <= mostMinutes)}
	if c.Verdict == Met && runtime.NumCPU() > fewCPUs {
		c.Verdict, c.Note = NotJudged, fmt.Sprintf("on %d CPUs", runtime.NumCPU())
	}
	return c
}
