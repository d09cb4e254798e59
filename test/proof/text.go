package proof

import (
	"io"
	"strings"
	"text/template"
	"unicode/utf8"
)

// markdown is the page for people.
var markdown = template.Must(template.New("markdown").Parse(`# {{.Title}}
{{range .Text}}
{{.}}
{{end}}
{{- with .Claims}}
## Bars

{{$.ClaimTable.Markdown}}
{{- end}}
{{- range .Sections}}
## {{.Title}}
{{range .Text}}
{{.}}
{{end}}
{{- range .Tables}}
{{with .Title}}**{{.}}**

{{end}}{{.Markdown}}
{{- end}}
{{- end}}
{{- with .Settings}}
## Where this was measured

{{$.SettingTable.Markdown}}
{{- end}}
All data: [{{.Name}}.json]({{.Name}}.json).
`))

// terminal is the page for a terminal: the tables, the claims last.
var terminal = template.Must(template.New("terminal").Parse(`
{{.Title}}
{{range .Settings}}  {{.Name}}: {{.Value}}
{{end}}
{{- range .Sections}}
{{.Title}}
{{range .Tables}}{{with .Title}} {{.}}
{{end}}{{.Text}}{{end}}
{{- end}}
{{- with .Claims}}
Bars
{{$.ClaimTable.Text}}
{{- end}}`))

// Print prints the tables for a terminal, the claims last.
func (p *Page) Print(out io.Writer) error {
	return terminal.Execute(out, p)
}

// ClaimTable returns the claims as a table.
func (p *Page) ClaimTable() Table {
	t := Table{Columns: []string{"what", "bar", "found", "verdict", "note"}}
	for _, claim := range p.Claims {
		t.Rows = append(t.Rows, []string{claim.What, claim.Bar, claim.Found, string(claim.Verdict), claim.Note})
	}
	return t
}

// SettingTable returns the settings as a table.
func (p *Page) SettingTable() Table {
	t := Table{Columns: []string{"setting", "value"}}
	for _, setting := range p.Settings {
		t.Rows = append(t.Rows, []string{setting.Name, setting.Value})
	}
	return t
}

// Text returns the table with columns as wide as what is in them.
func (t Table) Text() string {
	widths := make([]int, len(t.Columns))
	rows := append([][]string{t.Columns}, t.Rows...)
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var text strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if t.isText(i) {
				line.WriteString("  " + cell + padding)
			} else {
				line.WriteString("  " + padding + cell)
			}
		}
		text.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return text.String()
}

// isText returns whether a column is the first or has a cell that does not begin as a number does.
func (t Table) isText(column int) bool {
	if column == 0 {
		return true
	}
	for _, row := range t.Rows {
		if cell := row[column]; cell != "" && !strings.ContainsAny(cell[:1], "0123456789-+<>~.") {
			return true
		}
	}
	return false
}

// cellText makes a text fit into one cell of a Markdown table.
var cellText = strings.NewReplacer("|", `\|`, "\n", " ")

// Markdown returns the table as Markdown.
func (t Table) Markdown() string {
	var text strings.Builder
	row := func(cells []string) {
		text.WriteString("|")
		for _, cell := range cells {
			text.WriteString(" " + cellText.Replace(cell) + " |")
		}
		text.WriteString("\n")
	}
	row(t.Columns)
	text.WriteString("|")
	for i := range t.Columns {
		if t.isText(i) {
			text.WriteString("---|")
		} else {
			text.WriteString("---:|")
		}
	}
	text.WriteString("\n")
	for _, cells := range t.Rows {
		row(cells)
	}
	return text.String()
}
