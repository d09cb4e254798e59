package proof

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The sizes of a picture, in its own units.
const (
	width      = 760
	plotHeight = 300
	barHeight  = 30
	top        = 40 // for the title
	lineHeight = 20
	margin     = 16
	letter     = 6.8 // how wide a letter is, about
)

// style has colors that are told apart on both backgrounds, also by who does not see red and green apart. A picture
// brings its own background: a page may be dark where the reader's system is light, and the picture only knows the
// system.
const style = `<style>
text{font:13px system-ui,sans-serif;fill:#1f2328}.title{font-weight:600;font-size:15px}.dim{fill:#59636e}
.card{fill:#ffffff;stroke:#d1d9e0}.grid{stroke:#d1d9e0}.limit{stroke:#cf222e;stroke-dasharray:6 4;stroke-width:1.5}.interval{stroke:#1f2328;stroke-width:1.5}
.line{fill:none;stroke-width:2}.s0{stroke:#0969da}.s1{stroke:#bc4c00}.s2{stroke:#1a7f37}.s3{stroke:#8250df}.s4{stroke:#bf3989}.s5{stroke:#6e7781}
.f0{fill:#0969da}.f1{fill:#bc4c00}.f2{fill:#1a7f37}.f3{fill:#8250df}.f4{fill:#bf3989}.f5{fill:#6e7781}
@media (prefers-color-scheme:dark){text{fill:#f0f6fc}.dim{fill:#9198a1}.card{fill:#0d1117;stroke:#3d444d}.grid{stroke:#3d444d}.limit{stroke:#f85149}.interval{stroke:#f0f6fc}
.s0{stroke:#58a6ff}.s1{stroke:#f0883e}.s2{stroke:#3fb950}.s3{stroke:#bc8cff}.s4{stroke:#f778ba}.s5{stroke:#9198a1}
.f0{fill:#58a6ff}.f1{fill:#f0883e}.f2{fill:#3fb950}.f3{fill:#bc8cff}.f4{fill:#f778ba}.f5{fill:#9198a1}}
</style>
`

// sorts is how many lines look different.
const sorts = 6

// svg returns the picture of a plot.
func (p *Plot) svg() string {
	var body strings.Builder
	height := 0.0
	if len(p.Bars) > 0 {
		height = p.drawBars(&body)
	} else {
		height = p.drawLines(&body)
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" width="%[1]d" height="%.0[2]f" role="img" aria-label="%s">
%s<rect class="card" x="0.5" y="0.5" width="%d" height="%.0f" rx="6"/>
<text class="title" x="%d" y="%d">%s</text>
%s</svg>
`, width, height, escaped(p.Title), style, width-1, height-1, margin, top-14, escaped(p.Title), body.String())
}

// drawLines draws lines, with their names above them, and returns how high the picture is.
func (p *Plot) drawLines(out *strings.Builder) float64 {
	xs, ys := p.values()
	begin := float64(top + p.drawNames(out))
	ceiling, floor := begin+lineHeight, begin+lineHeight+plotHeight
	y := scaleOf(p.Y, ys, floor, ceiling)
	left := margin + widest(y.ticks)*letter + 10
	x := scaleOf(p.X, xs, left, width-2*margin)
	fmt.Fprintf(out, "<text class=\"dim\" x=\"%d\" y=\"%.0f\">%s</text>\n", margin, begin+4, escaped(p.Y.Label))
	for _, tick := range y.ticks {
		rule(out, "grid", left, y.place(tick), width-2*margin, y.place(tick))
		label(out, "end", left-8, y.place(tick)+4, number(tick))
	}
	for _, tick := range x.ticks {
		rule(out, "grid", x.place(tick), floor, x.place(tick), floor+5)
		label(out, "middle", x.place(tick), floor+lineHeight, number(tick))
	}
	label(out, "middle", (left+width-2*margin)/2, floor+2*lineHeight, p.X.Label)
	if p.Y.Limit != 0 {
		rule(out, "limit", left, y.place(p.Y.Limit), width-2*margin, y.place(p.Y.Limit))
	}
	if p.X.Limit != 0 {
		rule(out, "limit", x.place(p.X.Limit), ceiling, x.place(p.X.Limit), floor)
	}
	for i, line := range p.Lines {
		points := make([]string, len(line.Points))
		for i, point := range line.Points {
			points[i] = fmt.Sprintf("%.1f,%.1f", x.place(point.X), y.place(point.Y))
		}
		fmt.Fprintf(out, "<polyline class=\"line s%d\" points=\"%s\"/>\n", i%sorts, strings.Join(points, " "))
		if len(points) > maxMarks {
			continue
		}
		for _, point := range line.Points {
			fmt.Fprintf(out, "<circle class=\"f%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"/>\n", i%sorts, x.place(point.X),
				y.place(point.Y))
		}
	}
	return floor + 3*lineHeight - 4
}

// maxMarks is how many points of a line are marked; more would hide it.
const maxMarks = 20

// drawNames draws which line is which and returns how much room that has taken.
func (p *Plot) drawNames(out *strings.Builder) int {
	x, y := float64(margin), top
	for i, line := range p.Lines {
		wide := 26 + float64(utf8.RuneCountInString(line.Name))*letter + 18
		if x+wide > width-margin && x > margin {
			x, y = margin, y+lineHeight
		}
		fmt.Fprintf(out, "<rect class=\"f%d\" x=\"%.0f\" y=\"%d\" width=\"18\" height=\"4\"/>\n", i%sorts, x, y+4)
		fmt.Fprintf(out, "<text x=\"%.0f\" y=\"%d\">%s</text>\n", x+24, y+10, escaped(line.Name))
		x += wide
	}
	return y - top + lineHeight + 10
}

// drawBars draws bars with their names before them and their values behind, and returns how high the picture is.
func (p *Plot) drawBars(out *strings.Builder) float64 {
	longest := 0
	for _, bar := range p.Bars {
		longest = max(longest, utf8.RuneCountInString(bar.Name))
	}
	left := min(margin+float64(longest)*letter+10, width/2)
	values, _ := p.values()
	x := scaleOf(p.X, values, left, width-5*margin)
	floor := float64(top + 8 + len(p.Bars)*barHeight)
	for _, tick := range x.ticks {
		rule(out, "grid", x.place(tick), top, x.place(tick), floor+5)
		label(out, "middle", x.place(tick), floor+lineHeight, number(tick))
	}
	label(out, "middle", (left+width-5*margin)/2, floor+2*lineHeight, p.X.Label)
	for i, bar := range p.Bars {
		y := float64(top + 6 + i*barHeight)
		end := x.place(bar.Value)
		label(out, "end", left-8, y+15, bar.Name)
		fmt.Fprintf(out, "<rect class=\"f%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"2\"/>\n", i%sorts, left,
			y, max(end-left, 1), barHeight-10)
		if bar.hasInterval() {
			rule(out, "interval", x.place(bar.Low), y+10, x.place(bar.High), y+10)
			rule(out, "interval", x.place(bar.Low), y+5, x.place(bar.Low), y+15)
			rule(out, "interval", x.place(bar.High), y+5, x.place(bar.High), y+15)
			end = max(end, x.place(bar.High))
		}
		label(out, "start", end+6, y+15, number(bar.Value))
	}
	if p.X.Limit != 0 {
		rule(out, "limit", x.place(p.X.Limit), top, x.place(p.X.Limit), floor)
	}
	return floor + 3*lineHeight - 4
}

func rule(out *strings.Builder, class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class, x1, y1, x2, y2)
}

func label(out *strings.Builder, anchor string, x, y float64, text string) {
	fmt.Fprintf(out, "<text text-anchor=\"%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", anchor, x, y, escaped(text))
}

func widest(ticks []float64) float64 {
	most := 0
	for _, tick := range ticks {
		most = max(most, len(number(tick)))
	}
	return float64(most)
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

func escaped(text string) string {
	return escaper.Replace(text)
}
