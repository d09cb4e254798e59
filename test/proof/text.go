package proof

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Print prints the tables for a terminal, the claims last.
func (p *Page) Print(out io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "\n%s\n", p.Title)
	for _, setting := range p.Settings {
		fmt.Fprintf(&text, "  %s: %s\n", setting.Name, setting.Value)
	}
	for _, section := range p.Sections {
		fmt.Fprintf(&text, "\n%s\n", section.Title)
		for _, table := range section.Tables {
			if table.Title != "" {
				fmt.Fprintf(&text, " %s\n", table.Title)
			}
			table.print(&text)
		}
	}
	if len(p.Claims) > 0 {
		text.WriteString("\nBars\n")
		claims := p.claims()
		claims.print(&text)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// print prints a table with columns as wide as what is in them.
func (t *Table) print(text *strings.Builder) {
	widths := make([]int, len(t.Columns))
	rows := append([][]string{t.Columns}, t.Rows...)
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 || t.isText(i) {
				line.WriteString("  " + cell + padding)
			} else {
				line.WriteString("  " + padding + cell)
			}
		}
		text.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// isText tells whether a column has words: a cell that does not begin as a number does.
func (t *Table) isText(column int) bool {
	for _, row := range t.Rows {
		if cell := row[column]; cell != "" && !strings.ContainsAny(cell[:1], "0123456789-+<>~.") {
			return true
		}
	}
	return false
}

// claims returns the claims as a table.
func (p *Page) claims() Table {
	t := Table{Columns: []string{"what", "bar", "found", "verdict", "note"}}
	for _, claim := range p.Claims {
		t.Rows = append(t.Rows, []string{claim.What, claim.Bar, claim.Found, string(claim.Verdict), claim.Note})
	}
	return t
}

// markdown returns the page for people.
func (p *Page) markdown() string {
	var text strings.Builder
	fmt.Fprintf(&text, "# %s\n", p.Title)
	paragraphs(&text, p.Text)
	if len(p.Claims) > 0 {
		text.WriteString("\n## Bars\n")
		claims := p.claims()
		claims.markdown(&text)
	}
	for _, section := range p.Sections {
		fmt.Fprintf(&text, "\n## %s\n", section.Title)
		paragraphs(&text, section.Text)
		for _, plot := range section.Plots {
			fmt.Fprintf(&text, "\n![%s](%s)\n", plot.Title, p.picture(plot))
		}
		for _, table := range section.Tables {
			if table.Title != "" {
				fmt.Fprintf(&text, "\n**%s**\n", table.Title)
			}
			table.markdown(&text)
		}
	}
	if len(p.Settings) > 0 {
		text.WriteString("\n## Where this was measured\n")
		settings := Table{Columns: []string{"setting", "value"}}
		for _, setting := range p.Settings {
			settings.Rows = append(settings.Rows, []string{setting.Name, setting.Value})
		}
		settings.markdown(&text)
	}
	fmt.Fprintf(&text, "\nAll data: [%s.json](%[1]s.json).\n", p.Name)
	return text.String()
}

func paragraphs(text *strings.Builder, all []string) {
	for _, paragraph := range all {
		text.WriteString("\n" + paragraph + "\n")
	}
}

// cellText makes a text fit into one cell of a markdown table.
var cellText = strings.NewReplacer("|", `\|`, "\n", " ")

func (t *Table) markdown(text *strings.Builder) {
	text.WriteString("\n|")
	for _, column := range t.Columns {
		fmt.Fprintf(text, " %s |", cellText.Replace(column))
	}
	text.WriteString("\n|")
	for i := range t.Columns {
		if i == 0 || t.isText(i) {
			text.WriteString("---|")
		} else {
			text.WriteString("---:|")
		}
	}
	text.WriteString("\n")
	for _, row := range t.Rows {
		text.WriteString("|")
		for _, cell := range row {
			fmt.Fprintf(text, " %s |", cellText.Replace(cell))
		}
		text.WriteString("\n")
	}
}
