// Package proof writes what a suite has measured: a page for people, and all the data for programs. The same data
// always gives the same files, so a commit shows what has changed.
package proof

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Page is what one run of a suite has found.
type Page struct {
	// Name names the files: Name.json and Name.md.
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
}

// Table is a table. Its first column says what the row is about.
type Table struct {
	Title   string     `json:"title,omitempty"`
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

// Write writes the files of a page into a directory.
func (p *Page) Write(directory string) error {
	if err := p.check(); err != nil {
		return fmt.Errorf("page %s: %w", p.Name, err)
	}
	var text bytes.Buffer
	if err := markdown.Execute(&text, p); err != nil {
		return fmt.Errorf("page %s: %w", p.Name, err)
	}
	if err := Keep(filepath.Join(directory, p.Name+".json"), p); err != nil {
		return fmt.Errorf("page %s: %w", p.Name, err)
	}
	return os.WriteFile(filepath.Join(directory, p.Name+".md"), text.Bytes(), 0o644)
}

// check finds rows that do not fit into their tables.
func (p *Page) check() error {
	var errs []error
	for _, section := range p.Sections {
		for _, table := range section.Tables {
			for _, row := range table.Rows {
				if len(row) != len(table.Columns) {
					errs = append(errs, fmt.Errorf("section %q: a row has %d cells, and the table %d columns: %q",
						section.Title, len(row), len(table.Columns), strings.Join(row, " | ")))
				}
			}
		}
	}
	return errors.Join(errs...)
}
