// Package proof writes the pages of docs/proof. The same results always give the same page, so a commit shows what has
// changed.
package proof

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// Page is the report of one run of a suite.
type Page struct {
	Name     string // of the file, without .md
	Title    string
	Text     []string // paragraphs of Markdown
	Settings []Setting
	Claims   []Claim
	Sections []Section
}

// Setting is something the results depend on: the machine, a version, a flag.
type Setting struct {
	Name, Value string
}

// Claim compares one result with a bar.
type Claim struct {
	What, Bar, Found string
	Verdict          Verdict
	Note             string // why the bar is missed or not judged, or what else a reader must know
}

// Verdict is the outcome of a claim.
type Verdict string

// The outcomes of a claim.
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
	Title  string
	Text   []string // paragraphs of Markdown
	Tables []Table
}

// Table is a table. Its first column names the subject of the row.
type Table struct {
	Title   string
	Columns []string
	Rows    [][]string
}

// Keep writes results to a file, as JSON. It makes the directory.
func Keep(path string, results any) error {
	content, err := json.MarshalIndent(results, "", " ")
	if err != nil {
		return err
	}
	return write(path, append(content, '\n'))
}

func write(path string, content []byte) error {
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644))
}

// Write writes the page into a directory.
func (p *Page) Write(directory string) error {
	var text strings.Builder
	_, _ = fmt.Fprintf(&text, "# %s\n", p.Title)
	sections := p.Sections
	if len(p.Claims) > 0 {
		sections = append([]Section{{Title: "Bars", Tables: []Table{p.claimTable()}}}, sections...)
	}
	if len(p.Settings) > 0 {
		sections = append(sections[:len(sections):len(sections)],
			Section{Title: "Where this was measured", Tables: []Table{p.settingTable()}})
	}
	writeParagraphs(&text, p.Text)
	for _, section := range sections {
		_, _ = fmt.Fprintf(&text, "\n## %s\n", section.Title)
		writeParagraphs(&text, section.Text)
		for _, table := range section.Tables {
			if err := table.check(); err != nil {
				return fmt.Errorf("page %s, section %q: %w", p.Name, section.Title, err)
			}
			if table.Title != "" {
				_, _ = fmt.Fprintf(&text, "\n**%s**\n", table.Title)
			}
			text.WriteString("\n" + table.markdown())
		}
	}
	return write(filepath.Join(directory, p.Name+".md"), []byte(text.String()))
}

func writeParagraphs(text *strings.Builder, paragraphs []string) {
	for _, paragraph := range paragraphs {
		text.WriteString("\n" + paragraph + "\n")
	}
}

// Print prints the tables for a terminal, the claims last.
func (p *Page) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "\n%s\n", p.Title)
	p.settingTable().print(w)
	for _, section := range p.Sections {
		_, _ = fmt.Fprintf(w, "\n%s\n", section.Title)
		for _, table := range section.Tables {
			table.print(w)
		}
	}
	if len(p.Claims) > 0 {
		_, _ = fmt.Fprintln(w, "\nBars")
		p.claimTable().print(w)
	}
	return w.Flush()
}

func (p *Page) claimTable() Table {
	t := Table{Columns: []string{"what", "bar", "found", "verdict", "note"}}
	for _, claim := range p.Claims {
		t.Rows = append(t.Rows, []string{claim.What, claim.Bar, claim.Found, string(claim.Verdict), claim.Note})
	}
	return t
}

func (p *Page) settingTable() Table {
	t := Table{Columns: []string{"setting", "value"}}
	for _, setting := range p.Settings {
		t.Rows = append(t.Rows, []string{setting.Name, setting.Value})
	}
	return t
}

// check finds rows that do not fit the columns.
func (t Table) check() error {
	for _, row := range t.Rows {
		if len(row) != len(t.Columns) {
			return fmt.Errorf("a row has %d cells, and the table %d columns: %q", len(row), len(t.Columns), row)
		}
	}
	return nil
}

func (t Table) print(w io.Writer) {
	if t.Title != "" {
		_, _ = fmt.Fprintf(w, " %s\n", t.Title)
	}
	for _, row := range append([][]string{t.Columns}, t.Rows...) {
		_, _ = fmt.Fprintf(w, "  %s\n", strings.Join(row, "\t"))
	}
}

// markdown returns the table with columns of numbers aligned to the right.
func (t Table) markdown() string {
	alignment := make([]string, len(t.Columns))
	for i := range alignment {
		alignment[i] = "---:"
		if t.isText(i) {
			alignment[i] = "---"
		}
	}
	escape := strings.NewReplacer("|", `\|`, "\n", " ")
	var text strings.Builder
	_, _ = fmt.Fprintf(&text, "| %s |\n|%s|\n", strings.Join(t.Columns, " | "), strings.Join(alignment, "|"))
	for _, row := range t.Rows {
		for _, cell := range row {
			text.WriteString("| " + escape.Replace(cell) + " ")
		}
		text.WriteString("|\n")
	}
	return text.String()
}

// isText returns whether a column is the first or has a cell that does not begin like a number.
func (t Table) isText(column int) bool {
	for _, row := range t.Rows {
		if cell := row[column]; cell != "" && !strings.ContainsAny(cell[:1], "0123456789-+<>~.") {
			return true
		}
	}
	return column == 0
}
