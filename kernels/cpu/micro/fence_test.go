package micro

import (
	"math"
	"math/rand/v2"
	"testing"
)

// fence is the pattern around and between the rows of a matrix: a NaN, so that
// whoever reads it spoils the result.
const fence = 0x7fc0dead

// margin is the number of fence floats at either end: more than a vector, and
// odd, so that no row is aligned.
const margin = 37

// matrix is a float32 matrix in fences.
type matrix struct {
	rows, cols, stride int
	data               []float32
}

// newMatrix returns a matrix of fill() with gap fence floats between rows.
func newMatrix(rows, cols, gap int, fill func() float32) *matrix {
	m := &matrix{rows, cols, cols + gap, nil}
	m.data = make([]float32, 2*margin+rows*m.stride)
	for i := range m.data {
		m.data[i] = math.Float32frombits(fence)
	}
	for r := range rows {
		for c := range cols {
			*m.at(r, c) = fill()
		}
	}
	return m
}

func (m *matrix) at(r, c int) *float32 { return &m.data[margin+r*m.stride+c] }
func (m *matrix) ptr() *float32        { return &m.data[margin] }
func (m *matrix) row(r int) []float32  { return m.data[margin+r*m.stride:][:m.cols] }

func (m *matrix) clone() *matrix {
	c := *m
	c.data = append([]float32(nil), m.data...)
	return &c
}

// check fails the test where a fence was written.
func (m *matrix) check(t *testing.T, name string) {
	t.Helper()
	for i, v := range m.data {
		k := i - margin
		if k >= 0 && k < m.rows*m.stride && k%m.stride < m.cols {
			continue
		}
		if math.Float32bits(v) != fence {
			t.Fatalf("%s: fence at %d (row of %d, %d columns) holds %v", name, k, m.stride, m.cols, v)
		}
	}
}

// same fails the test where two matrices differ in a bit.
func (m *matrix) same(t *testing.T, name string, want *matrix) {
	t.Helper()
	for i, v := range m.data {
		if math.Float32bits(v) != math.Float32bits(want.data[i]) {
			t.Fatalf("%s: element %d is %v, want %v", name, i-margin, v, want.data[i])
		}
	}
}

// near reports |got-want| ≤ tol; it is false for NaN.
func near(got, want, tol float64) bool { return math.Abs(got-want) <= tol }

// seeded returns the random numbers of one test.
func seeded() *rand.Rand { return rand.New(rand.NewPCG(7, 11)) }

// uniform returns values in [0, 1).
func uniform(rng *rand.Rand) func() float32 { return rng.Float32 }

// spread returns values m·2^e with e from lo to hi, one in eight of them 0.
func spread(rng *rand.Rand, lo, hi int) func() float32 {
	return func() float32 {
		if rng.IntN(8) == 0 {
			return 0
		}
		return float32(math.Ldexp(1+rng.Float64(), lo+rng.IntN(hi-lo+1)))
	}
}

// every runs a test on each set of this machine.
func every(t *testing.T, test func(t *testing.T, s *Set)) {
	for _, s := range All() {
		t.Run(s.Name, func(t *testing.T) { test(t, s) })
	}
}

// checkControl fails the test if a kernel left the floating-point control
// register changed: denormals must still exist.
func checkControl(t *testing.T) {
	t.Helper()
	x := []float32{0x1p-126, 0.5}
	if x[0]*x[1] != 0x1p-127 {
		t.Fatal("2^-126 · 0.5 is 0: the control register was not restored")
	}
}
