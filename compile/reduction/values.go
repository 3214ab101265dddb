package reduction

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
)

// Tensor holds the values of an array in row-major order; a scalar has one.
// Ints is set for arrays of type int, Floats for the others.
type Tensor struct {
	Extents []int64
	Ints    []int64
	Floats  []float64
}

// newTensor makes a tensor of an array's type and the given extents, all 0.
func newTensor(t Type, extents []int64, n int64) *Tensor {
	if t == Int {
		return &Tensor{Extents: extents, Ints: make([]int64, n)}
	}
	return &Tensor{Extents: extents, Floats: make([]float64, n)}
}

// elements is how many values the tensor holds.
func (t *Tensor) elements() int { return len(t.Ints) + len(t.Floats) }

// extents returns the extents of an array at these sizes and how many elements it
// has. Extents below 0 are errors, and so are more than limit elements.
func extents(a *Array, sizes map[string]int64, limit int64) ([]int64, int64, error) {
	e := make([]int64, len(a.Extents))
	n := int64(1)
	for i := range a.Extents {
		x, ok := a.Extents[i].value(func(name string) int64 { return sizes[name] })
		if !ok || x < 0 {
			return nil, 0, errorf(a.Extents[i].Pos, "extent %s of %s is below 0 or above 2^63 at these sizes", &a.Extents[i], a.Name)
		}
		e[i] = x
		if x != 0 && n > limit/x {
			return nil, 0, &Error{Pos: a.Pos, memory: true, Msg: fmt.Sprintf("%s has more than the %d elements that memory is left for at these sizes; choose smaller ones, or raise the limit (--max-memory)", a.Name, limit)}
		}
		n *= x
	}
	return e, n, nil
}

// bounds returns the range of an array's values at these sizes.
func (r *Range) bounds(sizes map[string]int64) (low, high int64, err error) {
	lookup := func(name string) int64 { return sizes[name] }
	low, ok := r.Low.value(lookup)
	high, ok2 := r.High.value(lookup)
	if !ok || !ok2 {
		return 0, 0, errorf(r.Low.Pos, "a range beyond 2^63 at these sizes")
	}
	return low, high, nil
}

// Synthesise adds the inputs that data lacks at the given sizes, the same for the same
// seed. Integers are uniform in their range. Floats are multiples of 1/1024
// strictly between 0 and 1, so that sums of them are exact. An input of type int
// needs a range.
func (p *Program) Synthesise(sizes map[string]int64, seed uint64, data map[string]*Tensor, maxMemory int64) error {
	for k, a := range p.Arrays {
		if !a.Input || data[a.Name] != nil {
			continue
		}
		e, n, err := extents(a, sizes, maxMemory/8)
		if err != nil {
			return err
		}
		maxMemory -= 8 * n
		t := newTensor(a.Type, e, n)
		random := rand.New(rand.NewPCG(seed, uint64(k)))
		switch {
		case a.Type == Float:
			for i := range t.Floats {
				t.Floats[i] = float64(1+random.Int64N(1023)) / 1024
			}
		case a.Range == nil:
			return errorf(a.Pos, "input %s has no range to draw its values from; want '%s in [low,high)'", a.Name, a.Name)
		default:
			low, high, err := a.Range.bounds(sizes)
			if err != nil {
				return err
			}
			if n > 0 && (low >= high || high-low < 0) {
				return errorf(a.Pos, "the range of %s, [%d,%d), holds nothing at these sizes", a.Name, low, high)
			}
			for i := range t.Ints {
				t.Ints[i] = low + random.Int64N(high-low)
			}
		}
		data[a.Name] = t
	}
	return nil
}

// ReadTensor reads the values of an array of p as text: numbers in row-major order,
// separated by white space. There have to be as many as the array has elements at
// these sizes. Inputs are refused that have a NaN, which computed arrays may have.
func (p *Program) ReadTensor(r io.Reader, name string, sizes map[string]int64, maxMemory int64) (*Tensor, error) {
	a := p.byName[name]
	if a == nil {
		return nil, errorf(Pos{}, "%s is not declared", name)
	}
	e, n, err := extents(a, sizes, maxMemory/8)
	if err != nil {
		return nil, err
	}
	t := newTensor(a.Type, e, n)
	words := bufio.NewScanner(r)
	words.Split(bufio.ScanWords)
	k := int64(0)
	for ; words.Scan(); k++ {
		if k == n {
			return nil, errorf(a.Pos, "more than %d values for %s, whose extents are %v", n, name, e)
		}
		if a.Type == Int {
			t.Ints[k], err = strconv.ParseInt(words.Text(), 10, 64)
		} else {
			t.Floats[k], err = strconv.ParseFloat(words.Text(), 64)
		}
		if err != nil || a.Input && a.Type == Float && math.IsNaN(t.Floats[k]) {
			return nil, errorf(a.Pos, "value %d for %s is %q, want a number of type %v", k+1, name, words.Text(), a.Type)
		}
	}
	if err := words.Err(); err != nil {
		return nil, errorf(a.Pos, "value %d for %s: %v", k+1, name, err)
	}
	if k < n {
		return nil, errorf(a.Pos, "%d values for %s, want %d (extents %v)", k, name, n, e)
	}
	return t, nil
}

// WriteTo writes the values as ReadTensor reads them, a line for each row of the
// last index. Floats come back bit by bit.
func (t *Tensor) WriteTo(w io.Writer) (int64, error) {
	out := bufio.NewWriter(w)
	row := 1
	if n := len(t.Extents); n > 0 {
		row = int(t.Extents[n-1]) // 0 of no elements
	}
	var written int64
	var line []byte
	for k := range t.elements() {
		line = line[:0]
		if t.Ints != nil {
			line = strconv.AppendInt(line, t.Ints[k], 10)
		} else {
			line = strconv.AppendFloat(line, t.Floats[k], 'g', -1, 64)
		}
		line = append(line, [...]byte{' ', '\n'}[btoi((k+1)%row == 0)])
		n, err := out.Write(line)
		if written += int64(n); err != nil {
			return written, fmt.Errorf("reduction: writing values: %w", err)
		}
	}
	return written, out.Flush()
}

// Difference returns the largest relative difference of two elements at one place: 0 if all are equal, where
// two NaN are, and infinity where an integer, an extent or the type differs or one of two is NaN.
func (t *Tensor) Difference(o *Tensor) float64 {
	if !slices.Equal(t.Extents, o.Extents) || len(t.Floats) != len(o.Floats) || !slices.Equal(t.Ints, o.Ints) {
		return math.Inf(1)
	}
	worst := 0.0
	for k, x := range t.Floats {
		y := o.Floats[k]
		if x == y || math.IsNaN(x) && math.IsNaN(y) {
			continue
		}
		d := math.Abs(x-y) / max(math.Abs(x), math.Abs(y))
		if math.IsNaN(d) { // one is NaN, or infinite
			return math.Inf(1)
		}
		worst = max(worst, d)
	}
	return worst
}

// Rounding is Difference relative to the largest number of both tensors: what is left of a sum from which terms are subtracted again has
// errors of their size.
func (t *Tensor) Rounding(o *Tensor) float64 {
	if d := t.Difference(o); d == 0 || math.IsInf(d, 1) {
		return d
	}
	worst, largest := 0.0, 0.0
	for k, x := range t.Floats {
		y := o.Floats[k]
		if d := math.Abs(x - y); d > worst { // not of two infinities, or two NaN
			worst = d
		}
		for _, z := range []float64{x, y} {
			if m := math.Abs(z); m > largest && !math.IsInf(m, 1) {
				largest = m
			}
		}
	}
	return worst / largest
}
