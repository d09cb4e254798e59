package proof

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// page has all there is.
func page() *Page {
	return &Page{
		Name: "sample", Title: "A sample", Text: []string{"It begins.", "It goes on."},
		Settings: []Setting{{"CPUs", "2"}},
		Claims: []Claim{{What: "requests", Bar: "at most 3", Found: "2", Verdict: Judge(true)},
			{What: "gap", Bar: "none", Verdict: NotJudged, Note: "a|b"}},
		Sections: []Section{
			{Title: "Memory", Text: []string{"Of the <process>."},
				Tables: []Table{{Title: "RSS", Columns: []string{"side", "MB", "how"},
					Rows: [][]string{{"ours", "40", "read"}, {"theirs", "120", "read"}}},
					{Columns: []string{"side"}, Rows: [][]string{{"ours"}}}}},
			{Title: "Time"},
		},
		Data: map[string][]float64{"b": {2}, "a": {1}},
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
| ours | 40 | read |
| theirs | 120 | read |

| side |
|---|
| ours |

## Time

## Where this was measured

| setting | value |
|---|---:|
| CPUs | 2 |

All data: [sample.json](sample.json).
`

const wantText = `
A sample
  CPUs: 2

Memory
 RSS
  side     MB  how
  ours     40  read
  theirs  120  read
  side
  ours

Time

Bars
  what      bar        found  verdict     note
  requests  at most 3      2  met
  gap       none              not judged  a|b
`

func written(t *testing.T, p *Page) map[string]string {
	t.Helper()
	directory := filepath.Join(t.TempDir(), "new")
	if err := p.Write(directory); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(directory, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name()] = string(content)
	}
	return files
}

func TestPage(t *testing.T) {
	once, again := written(t, page()), written(t, page())
	if len(once) != 2 || !maps.Equal(once, again) {
		t.Errorf("two runs with the same data wrote %v and %v", once, again)
	}
	if got := once["sample.md"]; got != wantMarkdown {
		t.Errorf("the page is\n%s", got)
	}
	if !json.Valid([]byte(once["sample.json"])) {
		t.Errorf("this is not JSON: %s", once["sample.json"])
	}
	var text strings.Builder
	if err := page().Print(&text); err != nil || text.String() != wantText {
		t.Errorf("what is printed is\n%s\n%v", text.String(), err)
	}
}

func TestWhatCannotBeWrittenIsRefused(t *testing.T) {
	for name, change := range map[string]func(*Page){
		"a row with a cell too few":   func(p *Page) { p.Sections[0].Tables[0].Rows[0] = []string{"ours"} },
		"data that cannot be encoded": func(p *Page) { p.Data = math.Inf(1) },
	} {
		t.Run(name, func(t *testing.T) {
			p := page()
			change(p)
			if err := p.Write(t.TempDir()); err == nil {
				t.Error("it was written")
			}
		})
	}
}
