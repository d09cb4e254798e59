package proof

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
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
		Name: "sample", Title: "A sample", Text: []string{"It begins."},
		Settings: []Setting{{"CPUs", "2"}},
		Claims: []Claim{{What: "requests", Bar: "at most 3", Found: "2", Verdict: Judge(true)},
			{What: "gap", Bar: "none", Verdict: NotJudged, Note: "a|b"}},
		Sections: []Section{{
			Title: "Memory",
			Tables: []Table{{Title: "RSS", Columns: []string{"side", "MB", "how"},
				Rows: [][]string{{"ours", "40", "read"}, {"theirs", "120", "read"}}}},
			Plots: []Plot{
				{Name: "memory", Title: `RSS < "all"`, X: Axis{Label: "objects", Log: true}, Y: Axis{Label: "MB", Limit: 90},
					Lines: []Line{{"ours", []Point{{1000, 20}, {50000, 80}}}, {"theirs", []Point{{1000, 40}, {50000, 340.5}}}}},
				{Name: "rate", Title: "Rate", X: Axis{Label: "share", Limit: 0.75},
					Bars: []Bar{{Name: "ours", Value: 0.8, Low: 0.7, High: 0.9}, {Name: "theirs", Value: 0.02}}},
				{Name: "requests", Title: "Requests", X: Axis{Label: "requests", Log: true},
					Bars: []Bar{{Name: "ours", Value: 3}, {Name: "theirs", Value: 11}}},
			},
		}},
		Data: map[string][]float64{"b": {2}, "a": {1}},
	}
}

func written(t *testing.T, p *Page) map[string]string {
	t.Helper()
	directory := t.TempDir()
	if err := os.WriteFile(filepath.Join(directory, "sample-gone.svg"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
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

func TestTheSameDataGivesTheSameFiles(t *testing.T) {
	once, again := written(t, page()), written(t, page())
	if !maps.Equal(once, again) {
		t.Error("two runs with the same data wrote different files")
	}
	for _, name := range []string{"sample.json", "sample.md", "sample-memory.svg", "sample-rate.svg",
		"sample-requests.svg"} {
		if once[name] == "" {
			t.Errorf("%s was not written", name)
		}
	}
	if len(once) != 5 {
		t.Errorf("there are %d files, want 5: the picture of an earlier run has to go", len(once))
	}
}

func TestFilesCanBeRead(t *testing.T) {
	for name, content := range written(t, page()) {
		switch filepath.Ext(name) {
		case ".json":
			if !json.Valid([]byte(content)) {
				t.Errorf("%s is not JSON", name)
			}
		case ".svg":
			decoder := xml.NewDecoder(strings.NewReader(content))
			for {
				_, err := decoder.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
		case ".md":
			for _, want := range []string{
				"| ours | 40 | read |", "|---|---:|---|", `a\|b`, "| requests | at most 3 | 2 | met |  |",
				"| gap | none |  | not judged |", "](sample-memory.svg)", "| CPUs | 2 |",
				"| what | bar | found | verdict | note |\n|---|---|---:|---|---|",
			} {
				if !strings.Contains(content, want) {
					t.Errorf("the page has no %q:\n%s", want, content)
				}
			}
		}
	}
}

func TestWhatCannotBeDrawnIsRefused(t *testing.T) {
	for name, change := range map[string]func(*Page){
		"a name with a slash":         func(p *Page) { p.Name = "a/b" },
		"two plots of a name":         func(p *Page) { p.Sections[0].Plots[1].Name = "memory" },
		"not a number":                func(p *Page) { p.Sections[0].Plots[1].Bars[0].Value = math.NaN() },
		"nothing on a logarithm":      func(p *Page) { p.Sections[0].Plots[0].Lines[0].Points[0].X = 0 },
		"neither lines nor bars":      func(p *Page) { p.Sections[0].Plots[0].Lines = nil },
		"a line without a point":      func(p *Page) { p.Sections[0].Plots[0].Lines[0].Points = nil },
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

func TestPrint(t *testing.T) {
	var out strings.Builder
	if err := page().Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  ours     40  read\n", "  theirs  120  read\n", "not judged"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q in\n%s", want, out.String())
		}
	}
}

func TestScale(t *testing.T) {
	for _, test := range []struct {
		axis        Axis
		values      []float64
		first, last float64
		middle      float64 // the value in the middle
	}{
		{Axis{}, []float64{3, 97}, 0, 100, 50},
		{Axis{Limit: 150}, []float64{3, 97}, 0, 160, 80},
		{Axis{}, []float64{0}, 0, 1, 0.5},
		{Axis{}, []float64{0.03}, 0, 0.03, 0.015},
		{Axis{Log: true}, []float64{20, 40000}, 10, 100000, 1000},
		{Axis{Log: true}, []float64{10}, 10, 100, math.Sqrt(1000)},
	} {
		s := scaleOf(test.axis, test.values, 0, 10)
		if math.Abs(s.first-test.first) > 1e-9 || math.Abs(s.last-test.last) > 1e-9 ||
			math.Abs(s.place(test.middle)-5) > 1e-9 {
			t.Errorf("%v with %v: from %v to %v, %v at %v", test.axis, test.values, s.first, s.last, test.middle,
				s.place(test.middle))
		}
		if len(s.ticks) < 2 || len(s.ticks) > 9 {
			t.Errorf("%v with %v: %d ticks", test.axis, test.values, len(s.ticks))
		}
	}
}

func TestNumber(t *testing.T) {
	for value, want := range map[float64]string{0: "0", 0.6000000001: "0.6", 12.345: "12.35", 999: "999", 1000: "1,000",
		1234567.8: "1,234,568"} {
		if got := number(value); got != want {
			t.Errorf("%v is written %q, want %q", value, got, want)
		}
	}
}
