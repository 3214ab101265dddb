package reduction

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestValues(t *testing.T) {
	p := parse(t, programs["all"])
	x := []float64{1, -2.5e-300, math.Inf(1), math.Nextafter(1, 2), 0}
	var b bytes.Buffer
	if _, err := floats(x...).WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	got, err := p.ReadTensor(&b, "x", p.Sizes, 1<<20)
	if err != nil || !slices.Equal(got.Floats, x) {
		t.Errorf("%v, %v; want %v", got, err, x)
	}
	for _, c := range []struct{ name, text, want string }{
		{"w", "0 1 2 0 1", ""},
		{"w", "0 1 2 0", "4:11: 4 values for w, want 5 (extents [5])"},
		{"w", "0 1 2 0 1 1", "4:11: more than 5 values for w, whose extents are [5]"},
		{"w", "0 1 2 0 1.5", `4:11: value 5 for w is "1.5", want a number of type int`},
		{"x", "0 1 2 0 NaN", `3:13: value 5 for x is "NaN", want a number of type float`},
		{"p", "NaN", ""}, // which is computed
		{"q", "0", "q is not declared"},
		{"x", "0 " + strings.Repeat("1", 1<<17), "3:13: value 2 for x: bufio.Scanner: token too long"},
	} {
		_, err := p.ReadTensor(strings.NewReader(c.text), c.name, p.Sizes, 1<<20)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrProgram) || err.Error() != c.want) {
			t.Errorf("%.20s: %v, want %s", c.text, err, c.want)
		}
	}
}

// TestValueLines writes a line for each row of the last index.
func TestValueLines(t *testing.T) {
	for want, values := range map[string]*Tensor{
		"1 -2 3\n4 5 6\n": {Extents: []int64{2, 3}, Ints: []int64{1, -2, 3, 4, 5, 6}},
		"0.5 2 1e+300\n":  floats(0.5, 2, 1e300),
		"7\n":             {Ints: []int64{7}},
		"":                {Extents: []int64{3, 0}, Floats: []float64{}},
	} {
		var b strings.Builder
		if n, err := values.WriteTo(&b); err != nil || b.String() != want || n != int64(len(want)) {
			t.Errorf("%v is written as %q, %d bytes, want %q: %v", values.Extents, b.String(), n, want, err)
		}
	}
}

func TestSynthesise(t *testing.T) {
	p := parse(t, programs["all"])
	make := func(seed uint64) map[string]*Tensor {
		data := map[string]*Tensor{}
		if err := p.Synthesise(map[string]int64{"N": 1000, "K": 3}, seed, data, 1<<20); err != nil {
			t.Fatal(err)
		}
		return data
	}
	a, b, c := make(1), make(1), make(2)
	if !slices.Equal(a["x"].Floats, b["x"].Floats) || slices.Equal(a["x"].Floats, c["x"].Floats) || slices.Equal(a["x"].Floats, a["u"].Floats) {
		t.Error("the values do not depend on the seed and the input alone")
	}
	for _, x := range a["x"].Floats {
		if !(x > 0 && x < 1) || x*1024 != math.Trunc(x*1024) {
			t.Fatalf("%v is not a multiple of 1/1024 between 0 and 1", x)
		}
	}
	if w := a["w"].Ints; slices.Min(w) != 0 || slices.Max(w) != 2 {
		t.Errorf("integers from %d to %d, want 0 to 2", slices.Min(w), slices.Max(w))
	}
	for _, c := range []struct{ source, want string }{
		{"param N; size N = 3; input int w[N]; array int y[N]; output y; y[i] = w[i] : { [i] : 0 <= i < N };", "1:32: input w has no range to draw its values from; want 'w in [low,high)'"},
		{"param N; size N = 0; input int w[3] in [0,N); array int y[3]; output y; y[i] = w[i] : { [i] : 0 <= i < 3 };", "1:32: the range of w, [0,0), holds nothing at these sizes"},
	} {
		q := parse(t, c.source)
		if err := q.Synthesise(q.Sizes, 1, map[string]*Tensor{}, 1<<20); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// TestRounding takes differences relative to the largest number, and NaN and infinities as Difference does.
func TestRounding(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		x, y []float64
		want float64
	}{
		{[]float64{8, 0, inf, nan}, []float64{8, 0x1p-50, inf, nan}, 0x1p-53},
		{[]float64{1, 0, 3}, []float64{1, 0, 4}, 0.25},
		{[]float64{1, 0}, []float64{1, 0}, 0},
		{[]float64{1, 2}, []float64{1, inf}, inf},
		{[]float64{1, nan}, []float64{1, 2}, inf},
	} {
		if got := floats(c.x...).Rounding(floats(c.y...)); got != c.want {
			t.Errorf("%v and %v: %v, want %v", c.x, c.y, got, c.want)
		}
	}
}

func TestDifference(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		x, y *Tensor
		want float64
	}{
		{floats(), floats(), 0},
		{floats(1, nan, inf), floats(1, nan, inf), 0},
		{floats(1, 2), floats(1, 4), 0.5},
		{floats(-1), floats(1), 2},
		{floats(0), floats(1e-300), 1},
		{floats(nan), floats(1), inf},
		{floats(inf), floats(1), inf},
		{floats(inf), floats(-inf), inf},
		{floats(1), floats(1, 2), inf},
		{ints(1, 2), ints(1, 2), 0},
		{ints(1, 2), ints(1, 3), inf},
		{ints(1), floats(1), inf},
	} {
		if got := c.x.Difference(c.y); got != c.want {
			t.Errorf("difference of %v and %v: %v, want %v", c.x, c.y, got, c.want)
		}
	}
}
