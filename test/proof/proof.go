// Package proof writes what a suite has measured: a page for people, pictures on it, and all the data for programs. The
// same data always gives the same files, so a commit shows what has changed.
package proof

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Page is what one run of a suite has found.
type Page struct {
	// Name names the files: Name.json, Name.md, and Name-Plot.svg for each plot.
	Name  string `json:"name"`
	Title string `json:"title"`
	// Text is what the page begins with, a paragraph of markdown each.
	Text []string `json:"text,omitempty"`
	// Settings are what the numbers depend on: the machine, versions, flags.
	Settings []Setting `json:"settings,omitempty"`
	Claims   []Claim   `json:"claims,omitempty"`
	Sections []Section `json:"sections,omitempty"`
	// Data is all that was measured. It is in the JSON only.
	Data any `json:"data,omitempty"`
}

// Setting is something the numbers depend on.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Claim is one thing that is held against a bar.
type Claim struct {
	What    string  `json:"what"`
	Bar     string  `json:"bar"`
	Found   string  `json:"found"`
	Verdict Verdict `json:"verdict"`
	// Note says why a bar is missed or could not be judged, or what else a reader must know.
	Note string `json:"note,omitempty"`
}

// Verdict is what became of a claim.
type Verdict string

// The verdicts there are.
const (
	Met       Verdict = "met"
	Missed    Verdict = "MISSED"
	NotJudged Verdict = "not judged"
)

// Judge returns Met or Missed.
func Judge(isMet bool) Verdict {
	if isMet {
		return Met
	}
	return Missed
}

// Section is a part of a page.
type Section struct {
	Title  string   `json:"title"`
	Text   []string `json:"text,omitempty"` // a paragraph of markdown each
	Tables []Table  `json:"tables,omitempty"`
	Plots  []Plot   `json:"plots,omitempty"`
}

// Table is a table. Its first column says what the row is about.
type Table struct {
	Title   string     `json:"title,omitempty"`
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

// Plot is a picture: lines over two axes, or one bar below the other.
type Plot struct {
	// Name is a part of the file's name.
	Name  string `json:"name"`
	Title string `json:"title"`
	// X is what bars are measured on; Y is for lines only.
	X     Axis   `json:"x"`
	Y     Axis   `json:"y,omitzero"`
	Lines []Line `json:"lines,omitempty"`
	Bars  []Bar  `json:"bars,omitempty"`
}

// Axis is one of a plot. It begins at 0, or at a power of ten if it is logarithmic.
type Axis struct {
	Label string `json:"label"`
	Log   bool   `json:"log,omitempty"`
	// Limit is drawn across the plot, as what must not be passed; 0 for none.
	Limit float64 `json:"limit,omitempty"`
}

// Line is a line through its points, in their order.
type Line struct {
	Name   string  `json:"name"`
	Points []Point `json:"points"`
}

// Point is a point of a line.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Bar is one bar. Low and High are the interval that its value is uncertain in; both are 0 if there is none.
type Bar struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Low   float64 `json:"low,omitempty"`
	High  float64 `json:"high,omitempty"`
}

// Write writes the files of a page into a directory, and removes pictures that an earlier run of the same name has left
// there.
func (p *Page) Write(directory string) error {
	if err := p.check(); err != nil {
		return fmt.Errorf("page %s: %w", p.Name, err)
	}
	data, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		return fmt.Errorf("page %s: %w", p.Name, err)
	}
	files := map[string]string{p.Name + ".json": string(data) + "\n", p.Name + ".md": p.markdown()}
	for _, section := range p.Sections {
		for _, plot := range section.Plots {
			files[p.picture(plot)] = plot.svg()
		}
	}
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(directory, p.Name+"-*.svg"))
	if err != nil {
		return err
	}
	var errs []error
	for _, path := range old {
		errs = append(errs, os.Remove(path))
	}
	for name, content := range files {
		errs = append(errs, os.WriteFile(filepath.Join(directory, name), []byte(content), 0o644))
	}
	return errors.Join(errs...)
}

// picture returns the name of a plot's file.
func (p *Page) picture(plot Plot) string {
	return p.Name + "-" + plot.Name + ".svg"
}

var fileName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// check finds what could not be written so that it could be read.
func (p *Page) check() error {
	names := map[string]bool{}
	var errs []error
	if !fileName.MatchString(p.Name) {
		errs = append(errs, fmt.Errorf("the name %q is not one of a file: lower-case letters, digits, dashes", p.Name))
	}
	for _, section := range p.Sections {
		for _, table := range section.Tables {
			for _, row := range table.Rows {
				if len(row) != len(table.Columns) {
					errs = append(errs, fmt.Errorf("section %q: a row has %d cells, and the table %d columns: %q",
						section.Title, len(row), len(table.Columns), strings.Join(row, " | ")))
				}
			}
		}
		for _, plot := range section.Plots {
			if !fileName.MatchString(plot.Name) || names[plot.Name] {
				errs = append(errs, fmt.Errorf("section %q: the plot's name %q is not one of a file, or there are two of it",
					section.Title, plot.Name))
			}
			names[plot.Name] = true
			if err := plot.check(); err != nil {
				errs = append(errs, fmt.Errorf("plot %s: %w", plot.Name, err))
			}
		}
	}
	return errors.Join(errs...)
}
