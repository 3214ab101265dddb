package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
)

// series is a line of a chart. A y that is not finite interrupts it.
type series struct {
	name  string
	class string // of the style: its colour
	x, y  []float64
}

// chart draws lines over epochs as SVG: wide, and again narrow for phones, where a
// wide one would have letters too small to read. It returns "" if nothing is finite.
func chart(title, unit string, lines []series) template.HTML {
	lines = slices.DeleteFunc(slices.Clone(lines), func(s series) bool { return !slices.ContainsFunc(s.y, finite) })
	if len(lines) == 0 {
		return ""
	}
	var b strings.Builder
	for _, size := range []struct {
		class         string
		width, height float64
	}{{"wide", 760, 300}, {"narrow", 380, 280}} {
		p := &plot{width: size.width, height: size.height, b: &b}
		p.draw(size.class, title, unit, lines)
	}
	return template.HTML(b.String())
}

// finite reports whether x can be drawn: the difference of two such numbers is finite.
func finite(x float64) bool { return math.Abs(x) <= 1e300 }

// plot is one drawing: the range of its axes, and its size.
type plot struct {
	width, height          float64
	left, right            float64 // of the frame, in the drawing
	xmin, xmax, ymin, ymax float64
	b                      *strings.Builder
}

// The frame's distance from the drawing's upper and lower edge.
const (
	above = 14
	below = 40
)

// mostMarks is how many points of a line have a mark, which shows its numbers when the
// pointer rests on it, and mostPoints how many are drawn.
const (
	mostMarks  = 64
	mostPoints = 1000
)

// draw writes a chart of lines as one SVG element: grid, ticks, axes, lines, and the name of
// each line at its end. Every line has a finite value. The range is that of the finite values
// and a little more; a single value has a range made around it.
func (p *plot) draw(class, title, unit string, lines []series) {
	p.xmin, p.ymin = math.Inf(1), math.Inf(1)
	p.xmax, p.ymax = math.Inf(-1), math.Inf(-1)
	for _, s := range lines {
		for i, y := range s.y {
			if finite(y) {
				p.xmin, p.xmax = min(p.xmin, s.x[i]), max(p.xmax, s.x[i])
				p.ymin, p.ymax = min(p.ymin, y), max(p.ymax, y)
			}
		}
	}
	if p.xmin == p.xmax {
		p.xmin, p.xmax = p.xmin-1, p.xmax+1
	}
	if pad := 0.04 * (p.ymax - p.ymin); pad > 0 {
		p.ymin, p.ymax = p.ymin-pad, p.ymax+pad
	} else {
		pad := max(1, 0.05*math.Abs(p.ymin))
		p.ymin, p.ymax = p.ymin-pad, p.ymax+pad
	}
	yticks, ylabels := ticks(p.ymin, p.ymax, 5)
	xticks, xlabels := ticks(max(0, p.xmin), p.xmax, p.width/90)
	longest := 0
	for _, l := range ylabels {
		longest = max(longest, len([]rune(l)))
	}
	p.left, p.right = 14+7.2*float64(longest), p.width-64

	fmt.Fprintf(p.b, `<svg class="chart %s" viewBox="0 0 %g %g" role="img" aria-label="%s">`, class, p.width, p.height, html.EscapeString(title))
	for i, y := range yticks {
		fmt.Fprintf(p.b, `<line class="grid" x1="%s" x2="%s" y1="%s" y2="%[3]s"/>`, number(p.left), number(p.right), number(p.y(y)))
		p.text("end", p.left-8, p.y(y)+4, "tick", ylabels[i])
	}
	for i, x := range xticks {
		if x == math.Trunc(x) { // epochs are whole
			p.text("middle", p.x(x), p.height-below+18, "tick", xlabels[i])
		}
	}
	p.text("middle", (p.left+p.right)/2, p.height-4, "axis", "epoch")
	p.text("start", p.left, above-4, "axis", unit)
	for _, s := range lines {
		p.line(s)
	}
	p.names(lines)
	p.b.WriteString("</svg>")
}

func (p *plot) x(x float64) float64 {
	return p.left + (x-p.xmin)/(p.xmax-p.xmin)*(p.right-p.left)
}

func (p *plot) y(y float64) float64 {
	return above + (p.ymax-y)/(p.ymax-p.ymin)*(p.height-below-above)
}

func (p *plot) text(anchor string, x, y float64, class, text string) {
	fmt.Fprintf(p.b, `<text class="%s" text-anchor="%s" x="%s" y="%s">%s</text>`, class, anchor, number(x), number(y), html.EscapeString(text))
}

// line draws a series, of a long one every n-th point and the last. A value that is not finite
// interrupts the line. Points of short series have a mark with their numbers.
func (p *plot) line(s series) {
	step := (len(s.y) + mostPoints - 1) / mostPoints
	marks := len(s.y) <= mostMarks
	var path, dots strings.Builder
	verb := byte('M')
	for i := range s.y {
		if i%step != 0 && i != len(s.y)-1 {
			continue
		}
		if !finite(s.y[i]) {
			verb = 'M'
			continue
		}
		x, y := number(p.x(s.x[i])), number(p.y(s.y[i]))
		fmt.Fprintf(&path, "%c%s %s", verb, x, y)
		verb = 'L'
		if marks {
			of := fmt.Sprintf("epoch %g: %s", s.x[i], figure(s.y[i]))
			if s.name != "" { // the only line of a chart may have none
				of = s.name + ", " + of
			}
			fmt.Fprintf(&dots, `<circle class="%s" cx="%s" cy="%s" r="2.5"><title>%s</title></circle>`, s.class, x, y, html.EscapeString(of))
		}
	}
	fmt.Fprintf(p.b, `<path class="line %s" d="%s"/>%s`, s.class, &path, &dots)
}

// names writes the name of each line beside its end, moved down where it would meet the one
// above. Every line has a finite value, the last of which is its end.
func (p *plot) names(lines []series) {
	type name struct {
		s series
		y float64
	}
	var list []name
	for _, s := range lines {
		last := len(s.y) - 1
		for !finite(s.y[last]) {
			last--
		}
		list = append(list, name{s, p.y(s.y[last]) + 4})
	}
	slices.SortStableFunc(list, func(a, b name) int { return int(math.Copysign(1, a.y-b.y)) })
	for i := range list {
		if i > 0 {
			list[i].y = max(list[i].y, list[i-1].y+15)
		}
		p.text("start", p.right+8, list[i].y, "name "+list[i].s.class, list[i].s.name)
	}
}

// ticks returns about n round numbers from lo to hi, multiples of 1, 2 or 5 times a power of
// ten, and their texts. Numbers so large that steps are lost in their rounding give fewer.
func ticks(lo, hi, n float64) (at []float64, labels []string) {
	raw := (hi - lo) / max(1, n)
	unit := math.Pow(10, math.Floor(math.Log10(raw)))
	step := 10 * unit
	for _, m := range []float64{1, 2, 5} {
		if m*unit >= raw {
			step = m * unit
			break
		}
	}
	decimals := max(0, int(-math.Floor(math.Log10(step)+1e-9)))
	first := math.Ceil(lo / step)
	for k := range 20 {
		x := (first + float64(k)) * step
		if x > hi || k > 0 && x == at[k-1] { // steps that are lost in the rounding of large numbers
			break
		}
		text := strconv.FormatFloat(x, 'f', decimals, 64)
		if math.Abs(x) >= tooLong {
			text = strconv.FormatFloat(x, 'e', 2, 64)
		}
		at, labels = append(at, x), append(labels, grouped(text))
	}
	return at, labels
}

// number is a coordinate: a tenth of a pixel cannot be seen.
func number(x float64) string { return strconv.FormatFloat(math.Round(x*10)/10, 'g', -1, 64) }

// figure is a number as readers want it, with five digits.
func figure(x float64) string {
	if !finite(x) {
		return "not finite"
	}
	if math.Abs(x) >= tooLong {
		return grouped(strconv.FormatFloat(x, 'e', 4, 64))
	}
	decimals := 0
	if a := math.Abs(x); a > 0 {
		decimals = min(8, max(0, 4-int(math.Floor(math.Log10(a)))))
	}
	return grouped(strconv.FormatFloat(x, 'f', decimals, 64))
}

// tooLong is where numbers are written with an exponent.
const tooLong = 1e15

// grouped separates the thousands of a number, and gives it a true minus.
func grouped(text string) string {
	digits, sign := strings.CutPrefix(text, "-")
	whole, rest, _ := strings.Cut(digits, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "\u202f" + whole[i:] // a narrow space that does not break
	}
	if rest != "" {
		whole += "." + rest
	}
	if sign && strings.Trim(digits, "0.") != "" {
		whole = "−" + whole
	}
	return whole
}
