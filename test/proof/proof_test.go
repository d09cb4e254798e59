package proof

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// page has everything that a page can have.
func page() *Page {
	return &Page{
		Name: "sample", Title: "A sample", Text: []string{"It begins.", "It goes on."},
		Settings: []Setting{{"CPUs", "2"}},
		Claims: []Claim{{What: "requests", Bar: "at most 3", Found: "2", Verdict: Judge(true)},
			{What: "gap", Bar: "none", Verdict: NotJudged, Note: "a|b"}},
		Sections: []Section{
			{Title: "Memory", Text: []string{"Of the <process>."},
				Tables: []Table{{Title: "RSS", Columns: []string{"side", "MB", "how"},
					Rows: [][]string{{"this", "40", "read"}, {"others", "120", "read"}}},
					{Columns: []string{"side"}, Rows: [][]string{{"this"}}}}},
			{Title: "Time"},
		},
	}
}

const wantMarkdown = `# A sample

It begins.

It goes on.

## Bars

| what | bar | found | verdict | note |
|---|---|---:|---|---|
| requests | at most 3 | 2 | met |  |
| gap | none |  | not judged | a\|b |

## Memory

Of the <process>.

**RSS**

| side | MB | how |
|---|---:|---|
| this | 40 | read |
| others | 120 | read |

| side |
|---|
| this |

## Time

## Where this was measured

| setting | value |
|---|---:|
| CPUs | 2 |
`

const wantText = `
A sample
  setting  value
  CPUs     2

Memory
 RSS
  side    MB   how
  this    40   read
  others  120  read
  side
  this

Time

Bars
  what      bar        found  verdict     note
  requests  at most 3  2      met
  gap       none              not judged  a|b
`

func TestPage(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "new")
	if err := page().Write(directory); err != nil {
		t.Fatal(err)
	}
	if written, err := os.ReadFile(filepath.Join(directory, "sample.md")); err != nil || string(written) != wantMarkdown {
		t.Errorf("the page is\n%s\n%v", written, err)
	}
	var text strings.Builder
	if err := page().Print(&text); err != nil ||
		regexp.MustCompile(` +\n`).ReplaceAllString(text.String(), "\n") != wantText {
		t.Errorf("the terminal shows\n%s\n%v", text.String(), err)
	}
}

func TestRowsThatDoNotFit(t *testing.T) {
	p := page()
	p.Sections[0].Tables[0].Rows[0] = []string{"this"}
	if err := p.Write(t.TempDir()); err == nil {
		t.Error("the page was written")
	}
}

// Nothing that was found is without a cause.
func TestViolationsHaveCauses(t *testing.T) {
	all, err := readViolations("../..")
	if err != nil || len(all) < 50 {
		t.Fatalf("%d violations, %v", len(all), err)
	}
	for _, v := range all {
		if v.Date == "" || v.Plan == "" || v.Found == "" || v.Cause == "" || v.Changed == "" {
			t.Errorf("incomplete in %s: %+v", violationsFile, v)
		}
	}
}

func TestRecord(t *testing.T) {
	root := t.TempDir()
	known := []byte("# All\n- {date: a, plan: foo-scale, found: it has more, cause: b}\n")
	if err := write(filepath.Join(root, violationsFile), known); err != nil {
		t.Fatal(err)
	}
	run := &Run{Revision: "0123", root: root}
	long := "it has " + strings.Repeat("more and ", longest) + "more"
	for _, found := range []string{"it: \"lacks\"\n\tall", "it: \"lacks\"\n\tall", long, long} {
		if err := run.Record("foo-create / hang", found); err != nil {
			t.Fatal(err)
		}
	}
	if err := run.Record("foo-scale", "it has more"); err != nil {
		t.Fatal(err)
	}
	if err := (&Run{}).Record("foo-drift", "another operator"); err != nil {
		t.Fatal(err)
	}
	all, err := readViolations(root)
	want := Violation{Date: "0001-01-01", Revision: "0123", Plan: "foo-create / hang", Found: `it: "lacks" all`}
	if err != nil || len(all) != 4 || all[1] != want || len(all[2].Found) != longest || all[3].Plan != "foo-scale" {
		t.Errorf("%+v, %v", all, err)
	}
}

// A page is written only if the revision is that of the beginning. A run must not be too long.
func TestRun(t *testing.T) {
	root, directory := repository(t), t.TempDir()
	run := Begin(root, filepath.Join(root, "bin/manager"))
	run.End()
	if err := run.Write(page(), directory); err != nil || run.Claim().Verdict == Missed {
		t.Errorf("%v, %+v", err, run.Claim())
	}
	if err := write(filepath.Join(root, "cmd/main.go"), nil); err != nil {
		t.Fatal(err)
	}
	if err := run.Write(page(), directory); err == nil {
		t.Error("the repository may change during a run")
	}
	run.Begun = run.Ended.Add(-121 * time.Minute)
	if run.Claim().Verdict != Missed {
		t.Errorf("%+v", run.Claim())
	}
	if another := Begin(root, filepath.Join(directory, "manager")); another.Revision != "another" {
		t.Errorf("%+v", another)
	}
	unknown := Begin(directory, "")
	if err := unknown.Write(page(), directory); err == nil || unknown.Revision != "unknown" {
		t.Errorf("a page of an unknown revision was written: %+v", unknown)
	}
}

// A page is of one revision, without other changes.
func TestPagesNameTheirRevision(t *testing.T) {
	pages, err := filepath.Glob("../../docs/proof/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	revision := regexp.MustCompile(`(?m)^\| revision \| [0-9a-f]{12} \|$`)
	for _, page := range pages {
		content, err := os.ReadFile(page)
		if err != nil || len(revision.FindAll(content, -1)) != 1 {
			t.Errorf("%s does not say which revision it speaks of, %v", page, err)
		}
	}
}

// repository returns a new repository with one commit.
func repository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, arguments := range [][]string{{"init", "-q"}, {"commit", "-q", "--allow-empty", "-m", "empty"}} {
		arguments = append([]string{"-C", root, "-c", "user.name=test", "-c", "user.email=test@example.com"}, arguments...)
		if out, err := exec.Command("git", arguments...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return root
}

// There is no data beside the pages, and no plot that none shows.
func TestPagesOnly(t *testing.T) {
	entries, err := os.ReadDir("../../docs/proof")
	if err != nil {
		t.Fatal(err)
	}
	var pages strings.Builder
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join("../../docs/proof", entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(entry.Name()) == ".md" {
			pages.Write(content)
		}
	}
	for _, entry := range entries {
		switch name := entry.Name(); filepath.Ext(name) {
		case ".md":
		case ".svg":
			if !strings.Contains(pages.String(), "("+name+")") {
				t.Errorf("no page shows %s", name)
			}
		default:
			if name != filepath.Base(violationsFile) {
				t.Errorf("%s is neither a page nor a plot", name)
			}
		}
	}
}

// A revision shows whether there are changes other than to documents.
func TestRevision(t *testing.T) {
	root := repository(t)
	for _, test := range []struct {
		file      string
		isChanged bool
	}{{"docs/proof/bench.md", false}, {"cmd/main.go", true}} {
		if err := write(filepath.Join(root, test.file), nil); err != nil {
			t.Fatal(err)
		}
		revision, err := revisionOf(root)
		if err != nil || len(revision) < 12 || strings.Contains(revision, "changes") != test.isChanged {
			t.Errorf("%s: %q, %v", test.file, revision, err)
		}
	}
	if _, err := revisionOf(t.TempDir()); err == nil {
		t.Error("a directory without a revision has one")
	}
}
