package report

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestTicks(t *testing.T) {
	for _, tc := range []struct {
		lo, hi, n float64
		want      string
	}{
		{-900, -750, 5, "−900 −850 −800 −750"},
		{0, 1, 5, "0.0 0.2 0.4 0.6 0.8 1.0"},
		{-0.31, 0.29, 5, "−0.2 0.0 0.2"},
		{0.9994, 1.0006, 4, "0.9995 1.0000 1.0005"},
		{0, 123456, 4, "0 50\u202f000 100\u202f000"},
		{1e16, 1e16 + 4, 5, "1.00e+16"},
		{-1.2e300, 1.2e300, 5, "−1.00e+300 −5.00e+299 0 5.00e+299 1.00e+300"},
	} {
		at, labels := ticks(tc.lo, tc.hi, tc.n)
		if got := strings.Join(labels, " "); got != tc.want {
			t.Errorf("ticks(%v, %v, %v) = %q, want %q", tc.lo, tc.hi, tc.n, got, tc.want)
		}
		for _, x := range at {
			if !(x >= tc.lo && x <= tc.hi) {
				t.Errorf("ticks(%v, %v, %v) has %v", tc.lo, tc.hi, tc.n, x)
			}
		}
	}
}

func TestFigure(t *testing.T) {
	for _, tc := range []struct {
		x    float64
		want string
	}{
		{0, "0"}, {math.Copysign(0, -1), "0"}, {-757.4526, "−757.45"}, {1.393843, "1.3938"}, {0.000123456, "0.00012346"}, {-1e-12, "0.00000000"},
		{1234567.8, "1\u202f234\u202f568"}, {999, "999.00"}, {-1000, "−1\u202f000.0"}, {-2e18, "−2.0000e+18"}, {math.Inf(-1), "not finite"}, {math.NaN(), "not finite"},
	} {
		if got := figure(tc.x); got != tc.want {
			t.Errorf("figure(%v) = %q, want %q", tc.x, got, tc.want)
		}
	}
}

// TestChart draws what lines may be, and wants well-formed SVG whose points lie in
// their drawing.
func TestChart(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	long := make([]float64, 12345)
	for i := range long {
		long[i] = math.Sin(float64(i))
	}
	for _, tc := range []struct {
		name   string
		lines  [][]float64
		points int // of one drawing
	}{
		{"nothing", nil, 0},
		{"no points", [][]float64{{}}, 0},
		{"not finite", [][]float64{{nan, inf, -inf, 1e301}}, 0},
		{"one", [][]float64{{-3}}, 1},
		{"two that are equal", [][]float64{{5, 5}}, 2},
		{"zero", [][]float64{{0, 0, 0}}, 3},
		{"gap", [][]float64{{1, nan, 3, 4, -inf}}, 3},
		{"one line of two", [][]float64{{nan, nan}, {1, 2}}, 2},
		{"names meet", [][]float64{{1, 2}, {3, 2}}, 4},
		{"far apart", [][]float64{{-1e300, 1e300}}, 2},
		{"close", [][]float64{{1e16, 1e16 + 2}}, 2},
		{"marks", [][]float64{long[:mostMarks]}, mostMarks},
		{"one more than marks", [][]float64{long[:mostMarks+1]}, mostMarks + 1},
		{"all points", [][]float64{long[:mostPoints]}, mostPoints},
		{"one more than all points", [][]float64{long[:mostPoints+1]}, mostPoints/2 + 1},
		{"long", [][]float64{long}, 951},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var lines []series
			for k, y := range tc.lines {
				s := series{name: strconv.Itoa(k) + " <&>", class: "train", y: y}
				for i := range y {
					s.x = append(s.x, float64(i+1))
				}
				lines = append(lines, s)
			}
			text := string(chart(`a "title" <&>`, "nats", lines))
			if tc.points == 0 {
				if text != "" {
					t.Errorf("nothing is drawn as %q", text)
				}
				return
			}
			if n := points(t, text); n != 2*tc.points {
				t.Errorf("%d points in two drawings, want %d", n, 2*tc.points)
			}
			if tc.name == "gap" && !regexp.MustCompile(`d="M[^ML]* [^ML]*M[^ML]*L[^ML]*"`).MatchString(text) {
				t.Errorf("the line is not interrupted in %s", text)
			}
		})
	}
}

// points parses drawings and counts the points of their lines.
func points(t *testing.T, text string) (n int) {
	t.Helper()
	var width, height float64
	inside := func(of, value string, most float64) {
		x, err := strconv.ParseFloat(value, 64)
		if err != nil || !(x >= 0 && x <= most) {
			t.Errorf("%s: %q is not in 0..%v", of, value, most)
		}
	}
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return n
		}
		if err != nil {
			t.Fatalf("%v in %.300s", err, text)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		for _, a := range e.Attr {
			switch a.Name.Local {
			case "viewBox":
				size := strings.Fields(a.Value)
				width, _ = strconv.ParseFloat(size[2], 64)
				height, _ = strconv.ParseFloat(size[3], 64)
			case "x", "x1", "x2", "cx":
				inside(a.Name.Local, a.Value, width)
			case "y", "y1", "y2", "cy":
				inside(a.Name.Local, a.Value, height)
			case "d":
				for i, f := range strings.Fields(strings.NewReplacer("M", " ", "L", " ").Replace(a.Value)) {
					inside("d", f, []float64{width, height}[i%2])
					n += i % 2
				}
				if !strings.HasPrefix(a.Value, "M") {
					t.Errorf("a path begins with %.10q", a.Value)
				}
			}
		}
	}
}

// TestNamesApart wants the names of lines that end together to be readable.
func TestNamesApart(t *testing.T) {
	var b strings.Builder
	p := &plot{width: 100, height: 100, right: 80, ymin: 0, ymax: 1, b: &b}
	p.names([]series{{name: "a", y: []float64{0.5}}, {name: "b", y: []float64{0.5, math.NaN()}}, {name: "c", y: []float64{0.49}}})
	var at []float64
	for _, part := range strings.Split(b.String(), ` y="`)[1:] {
		y, _, _ := strings.Cut(part, `"`)
		x, err := strconv.ParseFloat(y, 64)
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, x)
	}
	slices.Sort(at)
	if len(at) != 3 || !(at[1]-at[0] >= 14 && at[2]-at[1] >= 14) {
		t.Errorf("names at %v", at)
	}
}

// TestChartWithoutName: what the pointer shows of the only line of a chart begins with the epoch.
func TestChartWithoutName(t *testing.T) {
	text := string(chart("Rows", "rows per second", []series{{class: "rate", x: []float64{1, 2}, y: []float64{50, 60}}}))
	if !strings.Contains(text, "<title>epoch 1: 50.000</title>") {
		t.Errorf("no title of the first point in %s", text)
	}
}
