package proof

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
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

// A page is of one revision, without other changes. Pages from before 2026-11-25 have a hash of the operator's sources.
func TestPagesNameTheirRevision(t *testing.T) {
	pages, err := filepath.Glob("../../docs/proof/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	revision := regexp.MustCompile(`(?m)^\| (revision|operator, by a hash of its sources) \| [0-9a-f]{12} \|$`)
	for _, page := range pages {
		content, err := os.ReadFile(page)
		if err != nil || len(revision.FindAll(content, -1)) != 1 {
			t.Errorf("%s does not say which revision it speaks of, %v", page, err)
		}
	}
}

// A revision shows whether there are changes other than to documents.
func TestOperator(t *testing.T) {
	root := t.TempDir()
	git := func(arguments ...string) {
		t.Helper()
		arguments = append([]string{"-C", root, "-c", "user.name=test", "-c", "user.email=test@example.com"}, arguments...)
		if out, err := exec.Command("git", arguments...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "empty")
	for _, test := range []struct {
		file      string
		isChanged bool
	}{{"docs/proof/bench.md", false}, {"cmd/main.go", true}} {
		if err := write(filepath.Join(root, test.file), nil); err != nil {
			t.Fatal(err)
		}
		revision, err := Operator(root)
		if err != nil || len(revision) < 12 || strings.Contains(revision, "changes") != test.isChanged {
			t.Errorf("%s: %q, %v", test.file, revision, err)
		}
	}
	if _, err := Operator(t.TempDir()); err == nil {
		t.Error("a directory without a revision has one")
	}
}
