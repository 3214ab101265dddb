package dataset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// TestTimestamps wants numbers that differ to stay different, and those of evidence
// to come back as the file has them.
func TestTimestamps(t *testing.T) {
	var in strings.Builder
	in.WriteString("t,x,n\n")
	for i := range 300 {
		fmt.Fprintf(&in, "%d,%d.250,0%d\n", 1_700_000_000+i, i%2*1_000_000, i%3)
	}
	path := save(t, "a.csv", []byte(in.String()))
	var warnings []string
	o := Options{KeepText: true, Types: map[string]Type{"t": {Kind: Continuous}}, Warn: func(w string) { warnings = append(warnings, w) }}
	src, err := Open(context.Background(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) > 0 {
		t.Errorf("warnings %q", warnings)
	}
	s := src.Schema()
	if c := s.Columns[0]; c.Offset != 1_700_000_149.5 || !(math.Abs(c.Scale-149.5/quartiles) < 1e-9) {
		t.Errorf("offset %v, scale %v", c.Offset, c.Scale)
	}
	b := new(Batch)
	if err := src.(*Table).Slice(0, 300).Slice(0, 300).Gather(context.Background(), b, span(0, 300)); err != nil {
		t.Fatal(err)
	}
	seen := map[float32]bool{}
	for i, v := range b.Columns[0].Values {
		seen[v] = true
		text := string(s.Columns[0].appendNumber(nil, v))
		if x, err := strconv.ParseFloat(text, 64); err != nil || x != float64(1_700_000_000+i) {
			t.Errorf("row %d is written as %s", i, text)
		}
	}
	if len(seen) != 300 {
		t.Errorf("%d different cells of 300", len(seen))
	}
	var out bytes.Buffer
	out.WriteString("t,x,n\n")
	w, err := NewWriter(&out, "b.csv", s, 300)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(b.Slice(0, 100)), w.Write(b.Slice(100, 300)), w.Close()); err != nil {
		t.Fatal(err)
	}
	if out.String() != in.String() {
		t.Errorf("written as %q", out.String()[:100])
	}
	part, err := OpenReader(context.Background(), path, Options{Schema: s, KeepText: true})
	if err != nil {
		t.Fatal(err)
	}
	defer part.Close()
	if err := part.Read(context.Background(), b, 7); err != nil {
		t.Fatal(err)
	}
	if got := string(b.Columns[1].Text[6]); len(b.Columns[1].Text) != 7 || got != "0.250" {
		t.Errorf("a reader keeps %d texts, %q", len(b.Columns[1].Text), got)
	}
}

// TestScales infers offset and scale, over one file and several.
func TestScales(t *testing.T) {
	for _, tt := range []struct {
		name          string
		files         []string
		offset, scale float64
	}{
		{"two numbers", []string{"x\n1.5\n2.5\n"}, 2, 0.5 / quartiles},
		{"several files", []string{"x\n1.5\n2.5\n", "x\nNA\n1.5\n2.5\n1.5\n2.5\n"}, 2, 1 / quartiles},
		{"a few numbers far away", []string{"x\n1e30\n" + strings.Repeat("1\n2\n3\n4\n5\n", 40)}, 3, 2 / quartiles},
		{"more than a few", []string{"x\n1e30\n1e30\n" + strings.Repeat("1\n2\n3\n4\n5\n", 40)}, 3, 2 / quartiles},
		{"most are equal", []string{"x\n0\n0\n0\n0\n5\n"}, 1, 2},
		{"most are equal, one far away", []string{"x\n1e30\n" + strings.Repeat("0\n0\n0\n0\n0\n0\n0\n0\n1\n5\n", 30)}, 0.6, math.Sqrt(2.24)},
		{"most are equal, far from the others", []string{"x\n" + strings.Repeat("0\n0\n0\n0\n0\n0\n0\n0\n999999999\n1000000001\n", 30)}, 2e8, math.Sqrt(1.6e17 + 0.2)},
		{"no spread", []string{"x\n0.1\n0.1\n0.1\n"}, 0.1, 1},
		{"no spread over two files", []string{"x\n0.1\n0.1\n", "x\n0.1\n"}, 0.1, 1},
		{"nothing observed in the second", []string{"x\n1.5\n2.5\n", "x\n?\n"}, 2, 0.5 / quartiles},
		{"large", []string{"x\n3e38\n-3e38\n"}, 0, 3e38 / quartiles},
		{"small", []string{"x\n3e-300\n-3e-300\n"}, 0, 3e-300 / quartiles},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var paths []string
			for i, in := range tt.files {
				paths = append(paths, save(t, fmt.Sprintf("%d.csv", i), []byte(in)))
			}
			src, err := OpenAll(context.Background(), paths, Options{Types: map[string]Type{"x": {Kind: Continuous}}})
			if err != nil {
				t.Fatal(err)
			}
			c := src.Schema().Columns[0]
			if !(math.Abs(c.Offset-tt.offset) <= 1e-12*math.Abs(tt.offset)) || !(math.Abs(c.Scale/tt.scale-1) <= 1e-12) {
				t.Errorf("offset %v, scale %v, want %v and %v", c.Offset, c.Scale, tt.offset, tt.scale)
			}
		})
	}
	src, err := Open(context.Background(), save(t, "a.csv", []byte("?\n?\n")), Options{Types: map[string]Type{"1": {Kind: Continuous}}})
	if err != nil {
		t.Fatal(err)
	}
	if c := src.Schema().Columns[0]; c.Offset != 0 || c.Scale != 1 {
		t.Errorf("of no numbers: offset %v, scale %v", c.Offset, c.Scale)
	}
}

// TestLostByChance wants no warning of a few numbers that are stored like others: of some thousand that float64 holds, as draws of a
// normal distribution, two often are, and their offset is right.
func TestLostByChance(t *testing.T) {
	for _, tt := range []struct{ numbers, pairs, warnings int }{
		{999, 0, 0},
		{999, 1, 1},
		{1000, 1, 0},
		{1000, 2, 1},
		{4000, 4, 0},
		{4000, 5, 1},
	} {
		var in strings.Builder
		in.WriteString("x\n")
		for i := range tt.numbers {
			x := float64(i/2) + 0.25
			switch {
			case i%2 == 1 && i/2 < tt.pairs:
				x += 1e-12 // like the number before
			case i%2 == 1:
				x += 0.5
			}
			fmt.Fprintln(&in, x)
		}
		var warnings []string
		if _, err := Open(context.Background(), save(t, "a.csv", []byte(in.String())), Options{Warn: func(w string) {
			if strings.Contains(w, "too close") {
				warnings = append(warnings, w)
			}
		}}); err != nil {
			t.Fatal(err)
		}
		if len(warnings) != tt.warnings {
			t.Errorf("%d of %d numbers are stored like others: %q, want %d warnings", tt.pairs, tt.numbers, warnings, tt.warnings)
		}
	}
}

// TestLostCells wants a warning where different numbers become one.
func TestLostCells(t *testing.T) {
	var in strings.Builder
	in.WriteString("x\n")
	for i := range 20 {
		fmt.Fprintf(&in, "%de9\n%de9\n%d\n", i, i, 1_000_000_000_000+i)
	}
	var warnings []string
	path := save(t, "a.csv", []byte(in.String()))
	if _, err := Open(context.Background(), path, Options{Warn: func(w string) { warnings = append(warnings, w) }}); err != nil {
		t.Fatal(err)
	}
	want := path + `: "x" has numbers too close together for its offset 1.45e+10 and scale 7.36112e+11: of 40 different ones, 19 cannot be told from others; subtract an offset`
	if len(warnings) != 1 || warnings[0] != want {
		t.Errorf("got  %q\nwant %q", warnings, want)
	}
}

// TestNumbers wants the text of a cell to be read as the cell.
func TestNumbers(t *testing.T) {
	for _, c := range []Column{
		{Kind: Continuous}, {Kind: Continuous, Offset: 1.7e9, Scale: 86.5}, {Kind: Continuous, Offset: -3, Scale: 1e-12},
		{Kind: Continuous, Offset: 0.1, Scale: 1}, {Kind: Continuous, Scale: 1e35},
	} {
		for _, x := range []float64{0, 1, -1, 0.1, 1e6, 123456789, 1.7e9, 1.700000123e9, -1e-7, 3e30, c.Offset, c.Offset + c.Scale, c.Offset - 1e3*c.Scale} {
			v := c.Standard(x)
			if math.IsInf(float64(v), 0) {
				continue
			}
			text := string(c.appendNumber(nil, v))
			back, err := strconv.ParseFloat(text, 64)
			if err != nil || c.Standard(back) != v {
				t.Errorf("%+v: %v is written as %s, and %v is read as %v", c, x, text, v, c.Standard(back))
			}
			if c.Scale != 0 && math.Abs(float64(v)) < 1e6 && len(text) > len(strconv.FormatFloat(x, 'g', -1, 64)) {
				t.Errorf("%+v: %v is written as %s", c, x, text)
			}
		}
	}
}

// TestRescaled stores a source's numbers in another way.
func TestRescaled(t *testing.T) {
	path := save(t, "a.csv", []byte("x,n\n1.5,1\n?,0\n4.5,1\n"))
	src, err := Open(context.Background(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if Rescaled(src, src.Schema()) != src {
		t.Error("the same scale makes another source")
	}
	like := &Schema{Columns: []Column{{Name: "x", Kind: Continuous, Offset: 1, Scale: 0.25}, {Name: "n", Categories: 2}}}
	got := Rescaled(src, like)
	if want := "x:real n:2 1.5,1 -,0 4.5,1"; show(t, got) != want {
		t.Errorf("got %s, want %s", show(t, got), want)
	}
	b := new(Batch)
	if err := got.Gather(context.Background(), b, []int{2}); err != nil {
		t.Fatal(err)
	}
	if v := b.Columns[0].Values[0]; v != 14 {
		t.Errorf("4.5 is stored as %v, want 14", v)
	}
}

// TestRescaledCodes stores codes as the numbers of a column that has a scale or bins, and leaves others as they are.
func TestRescaledCodes(t *testing.T) {
	src, err := Open(context.Background(), save(t, "a.csv", []byte("x,y,n,s\n1,0,1,a\n?,2,0,b\n5,1,1,a\n")), Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := Rescaled(src, &Schema{Columns: []Column{
		{Name: "x", Kind: Continuous, Offset: 1, Scale: 0.25}, {Name: "y", Kind: Continuous, Edges: []float64{0, 1.5, 3}},
		{Name: "n", Kind: Continuous}, {Name: "s", Kind: Continuous, Scale: 2},
	}})
	if want := "x:real y:real n:2 s:a|b 1,0,1,0 -,2,0,1 5,1,1,0"; show(t, got) != want {
		t.Errorf("got %s, want %s", show(t, got), want)
	}
	b := new(Batch)
	for range 2 { // over the memory of the first time
		if err := got.Gather(context.Background(), b, []int{2, 1}); err != nil {
			t.Fatal(err)
		}
		if x := b.Columns[0].Values; len(x) != 2 || x[0] != 16 || !b.Columns[0].IsMissing(1) || b.Columns[1].Discrete() {
			t.Errorf("5 and a missing cell are stored as %v, want 16 and NaN", x)
		}
	}
}

// TestRescaledNumbers takes labels that are numbers for these where a column has no labels. One that is none of its categories is refused in
// the row that has it, and leaves the others what they are.
func TestRescaledNumbers(t *testing.T) {
	src, err := Open(context.Background(), save(t, "a.csv", []byte("n\n1\n2\n9\n")), Options{Types: map[string]Type{"n": {Labels: true}}})
	if err != nil {
		t.Fatal(err)
	}
	got := Rescaled(src, &Schema{Columns: []Column{{Name: "n", Categories: 9}}})
	b := new(Batch)
	if err := got.Gather(context.Background(), b, []int{1, 0}); err != nil {
		t.Fatal(err)
	}
	if c := &b.Columns[0].Codes; c.At(0) != 2 || c.At(1) != 1 {
		t.Errorf("the numbers 2 and 1 have the codes %d and %d", c.At(0), c.At(1))
	}
	if err := got.Gather(context.Background(), b, []int{0, 2}); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), `"n" has the number 9, which is not one of its categories`) {
		t.Errorf("the number 9 of the categories 0 to 8: %v", err)
	}
}

// TestPicks wants the quartiles of a sample to be near those of all numbers, also
// where these come in order or in turns, and over two files.
func TestPicks(t *testing.T) {
	for name, number := range map[string]func(i int) float64{
		"ascending": func(i int) float64 { return float64(i) },
		"in turns":  func(i int) float64 { return float64(i % 400) },
		"squares":   func(i int) float64 { return float64(i) * float64(i) },
	} {
		var all []float64
		var p, q picks
		for i := range 40_000 {
			all = append(all, number(i))
			if i < 10_000 {
				p.add(number(i), 1000)
			} else {
				q.add(number(i), 1000)
			}
		}
		p.merge(&q, 1000)
		if n := len(p.list); n < 400 || n > 1000 {
			t.Errorf("%s: %d numbers are kept", name, n)
		}
		var whole picks
		for _, x := range all {
			whole.add(x, len(all))
		}
		center, spread := p.spread()
		wantCenter, wantSpread := whole.spread()
		// Four standard errors of a quantile of 400 numbers are 0.1 of the mass.
		if !(math.Abs(center-wantCenter) < 0.2*wantSpread*quartiles) || !(math.Abs(spread/wantSpread-1) < 0.3) {
			t.Errorf("%s: centre %v, spread %v, of all numbers %v and %v", name, center, spread, wantCenter, wantSpread)
		}
	}
}

// TestFarCells wants the cells that are far from most to be missing in training, however
// many these are, and a warning that counts them; of long tails next to none.
func TestFarCells(t *testing.T) {
	const n = 20_000
	rng := rand.New(rand.NewPCG(1, 9))
	every := func(k int, far float64) func(i int) float64 {
		return func(i int) float64 {
			if i%k == 0 {
				return far
			}
			return rng.NormFloat64()
		}
	}
	for _, tt := range []struct {
		name   string
		far    int // cells
		number func(i int) float64
	}{
		{"a tight cluster and others", n / 5, func(i int) float64 {
			if i%5 == 0 {
				return 1000 + rng.NormFloat64()
			}
			return 1e-6 * rng.NormFloat64()
		}},
		{"a tight cluster and nearly as many others", 0, func(i int) float64 {
			if i%10 < 3 {
				return 1000 + rng.NormFloat64()
			}
			return 1e-6 * rng.NormFloat64()
		}},
		{"log-normal", 0, func(int) float64 { return math.Exp(3 * rng.NormFloat64()) }},
		{"sentinels", n / 500, every(500, 1e9)},
		{"more sentinels", n / 50, every(50, 1e9)},
		{"zeros and a sentinel", 1, func(i int) float64 {
			switch {
			case i == 7:
				return 1e9
			case i%5 > 0:
				return 0
			}
			return rng.NormFloat64()
		}},
	} {
		var in strings.Builder
		in.WriteString("x\n")
		for i := range n {
			fmt.Fprintln(&in, tt.number(i))
		}
		warned := ""
		src, err := Open(context.Background(), save(t, "a.csv", []byte(in.String())), Options{Warn: func(w string) { warned += w }})
		if err != nil {
			t.Fatal(err)
		}
		b := new(Batch)
		if err := src.Gather(context.Background(), b, span(0, n)); err != nil {
			t.Fatal(err)
		}
		far := 0
		for _, v := range b.Columns[0].Values {
			if math.Abs(float64(v)) > FarValue {
				far++
			}
		}
		if far != tt.far {
			t.Errorf("%s: %d cells are far, want %d", tt.name, far, tt.far)
		}
		if far > 0 != strings.Contains(warned, "training takes those as missing") {
			t.Errorf("%s: %d cells are far, and the warning is %q", tt.name, far, warned)
		}
	}
}

// TestFarFile: a number far from all others has a warning where it is the only one of its file, too.
func TestFarFile(t *testing.T) {
	near := save(t, "near.csv", []byte("x\n"+strings.Repeat("1\n2\n3\n4\n5\n", 40)))
	for far, room := range map[string]string{"1e30": "for them, log-normal or a histogram with edges", "-1e30": "for them, a histogram with edges"} {
		alone := save(t, "alone.csv", []byte("x\n"+far+"\n"))
		for _, paths := range [][]string{{near, alone}, {alone, near}} {
			warned := ""
			if _, err := OpenAll(context.Background(), paths, Options{Types: map[string]Type{"x": {Kind: Continuous}}, Warn: func(w string) { warned += w }}); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(warned, "training takes those as missing (1 of 201 cells sampled) where the leaf is Gaussian:") || !strings.HasSuffix(warned, room) {
				t.Errorf("%s in %q: the warning is %q", far, paths, warned)
			}
		}
	}
}

// TestLogScale: the logarithm of a scale below the least normal number is its own.
func TestLogScale(t *testing.T) {
	for scale, want := range map[float64]float64{1: 0, 1e-310: -713.8013788281542, 5e-324: -744.4400719213812, 0: 0} {
		c := &Column{Kind: Continuous, Scale: scale}
		if got := c.LogScale(); !(math.Abs(got-want) <= 1e-12*math.Abs(want)) {
			t.Errorf("scale %v: %v, want %v", scale, got, want)
		}
	}
}
