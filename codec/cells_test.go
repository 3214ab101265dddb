package codec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
)

// testModel makes a random circuit of discrete variables ready, and its reference.
func testModel(t *testing.T, seed uint64, o reference.RandomOptions) (*Model, *reference.Evaluator, *circuit.Graph) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	o.Discrete = true
	g := reference.Random(rng, o)
	p, err := reference.Init(g, seed, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err = reference.FromFloat32(g, p.Float32()) // as a file has them
	if err != nil {
		t.Fatal(err)
	}
	ev, err := reference.New(g, p)
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(g, p.Read, reference.Schema(g))
	if err != nil {
		t.Fatal(err)
	}
	return m, ev, g
}

// sampleRows draws rows with missing cells of an evaluator.
func sampleRows(t *testing.T, ev *reference.Evaluator, g *circuit.Graph, rng *rand.Rand, n int, missing float64) [][]float64 {
	t.Helper()
	rows := make([][]float64, n)
	for i := range rows {
		row, err := ev.Sample(reference.MissingRow(g.NumVars), rng)
		if err != nil {
			t.Fatal(err)
		}
		for v := range row {
			if rng.Float64() < missing {
				row[v] = math.NaN()
			}
		}
		rows[i] = row
	}
	return rows
}

func codesOf(rows [][]float64) []int32 {
	var codes []int32
	for _, row := range rows {
		for _, x := range row {
			if math.IsNaN(x) {
				codes = append(codes, absent)
			} else {
				codes = append(codes, int32(x))
			}
		}
	}
	return codes
}

// conditionals is a cellCoder that compares the distribution of every cell with the
// reference, given the cells that came before.
type conditionals struct {
	t     *testing.T
	ev    *reference.Evaluator
	rows  [][]float64
	given [][]float64 // the cells so far
	next  int         // cell that comes next, in the order of coding
	cells [][2]int    // row and variable of each
	bits  float64
}

func newConditionals(t *testing.T, m *Model, ev *reference.Evaluator, rows [][]float64) *conditionals {
	c := &conditionals{t: t, ev: ev, rows: rows}
	for range rows {
		c.given = append(c.given, reference.MissingRow(len(m.schema.Columns)))
	}
	for _, v := range m.plan.vars {
		for r, row := range rows {
			if !math.IsNaN(row[v]) {
				c.cells = append(c.cells, [2]int{r, int(v)})
			}
		}
	}
	return c
}

func (c *conditionals) cell(d *distribution, code int) int {
	c.t.Helper()
	r, v := c.cells[c.next][0], c.cells[c.next][1]
	c.next++
	row := slices.Clone(c.given[r])
	before, err := c.ev.LogLikelihood(row)
	if err != nil {
		c.t.Fatal(err)
	}
	for x := range d.codes {
		row[v] = float64(x)
		ll, err := c.ev.LogLikelihood(row)
		if err != nil {
			c.t.Fatal(err)
		}
		got, want := (d.below(x+1)-d.below(x))/d.all, math.Exp(ll-before)
		// Rounding of some hundred float64 operations, and of differences of cumulative
		// probabilities below 1; float32 weights sum to 1 within 1e-6.
		if !(math.Abs(got-want) <= 2e-6*want+1e-13) {
			c.t.Errorf("row %d, variable %d: p(%d | before) = %v, want %v", r, v, x, got, want)
		}
	}
	c.given[r][v] = float64(code)
	lo, hi := d.below(code), d.below(code+1)
	d.possible = lo < hi
	c.bits -= math.Log2((hi - lo) / d.all)
	return code
}

// TestCodecConditionals compares every conditional of random circuits with the
// reference, and their product with the likelihood of the row.
func TestCodecConditionals(t *testing.T) {
	for seed := range uint64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m, ev, g := testModel(t, seed, reference.RandomOptions{Vars: 1 + int(seed%9), MaxUnits: 6})
			rng := rand.New(rand.NewPCG(seed, 2))
			rows := sampleRows(t, ev, g, rng, 1+rng.IntN(groupRows), []float64{0, 0.3}[seed%2])
			c := newConditionals(t, m, ev, rows)
			codes := codesOf(rows)
			newState(m).group(c, codes, len(rows))
			if c.next != len(c.cells) {
				t.Errorf("%d cells were coded, want %d", c.next, len(c.cells))
			}
			want := 0.0
			for _, row := range rows {
				ll, err := ev.LogLikelihood(row)
				if err != nil {
					t.Fatal(err)
				}
				want -= ll / math.Ln2
			}
			if !(math.Abs(c.bits-want) <= 1e-4*(1+want)) {
				t.Errorf("%v bits, want %v", c.bits, want)
			}
		})
	}
}

// TestExp holds exp to that of package math within its range, ends included, and to its bounds beyond it.
func TestExp(t *testing.T) {
	for _, x := range []float64{-708, -707.5, -30, -1, -1e-9, 0, 0.3, 1, 88, 708.9, 709} {
		if got, want := exp(x), math.Exp(x); !(math.Abs(got-want) <= 1e-15*want) {
			t.Errorf("exp(%v) = %v, want %v", x, got, want)
		}
	}
	for x, want := range map[float64]float64{-708.1: 0, math.Inf(-1): 0, math.NaN(): 0, 709.1: 0x1p1023, math.Inf(1): 0x1p1023} {
		if got := exp(x); got != want {
			t.Errorf("exp(%v) = %v, want %v", x, got, want)
		}
	}
}
