package tensor_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// columns are columns with inputs, as arguments of the kernels of posteriors, and what these
// are to write.
type columns struct {
	v         tensor.Variant
	rows, cap int
	rng       *rand.Rand

	params, kept, val  []float32
	codes              []uint32
	exp                []int32
	bad, list, offsets []uint32
	variables          []tensor.Variable
	leaves             []tensor.Leaf
	uses               []tensor.Use
	want               [][]float64 // by row: elements
}

func newColumns(v tensor.Variant, rows int) *columns {
	c := &columns{v: v, rows: rows, cap: rows + 3, rng: rand.New(rand.NewPCG(uint64(rows), uint64(v.Block)))}
	c.list, c.offsets = []uint32{0, 1}, []uint32{0} // the root is the second sum
	c.want = make([][]float64, rows)
	// Rows are impossible by a mantissa of 0, or by a log of -Inf where they are marked.
	c.val, c.exp, c.bad = make([]float32, c.cap*v.Block), make([]int32, c.cap), make([]uint32, c.cap)
	for r := range c.val {
		c.val[r] = 1
	}
	for r := range rows {
		at := r * v.Block
		switch r % 11 {
		case 3:
			c.val[at] = 0
		case 5:
			c.bad[r], c.val[at] = 1, float32(math.Inf(-1))
		case 7:
			c.bad[r], c.val[at] = 1, -3
		case 8:
			c.exp[r] = tensor.Lost
		}
	}
	return c
}

func (c *columns) impossible(r int) bool { return r%11 == 3 || r%11 == 5 || r%11 == 8 }

// input is an input of a column: its units, the elements that it flows from, and
// whether the numbers of its table have exponents.
type input struct {
	units, uses int
	exps        bool
}

// column adds a column with a number of codes, 0 for values, of whose cells a share is missing.
func (c *columns) column(codes int, missing float64, chosen bool, inputs ...input) {
	at := uint32(room(&c.codes, c.cap, 0))
	for r := range c.rows {
		c.codes[int(at)+r] = uint32(codes)
		if codes > 0 && c.rng.Float64() >= missing {
			c.codes[int(at)+r] = uint32(c.rng.IntN(codes))
		}
	}
	variable := tensor.Variable{Codes: uint32(codes), At: at, Leaf: uint32(len(c.leaves)), Leaves: uint32(len(inputs))}
	// Flows of a row add up to about 1; tables of a unit to 1.
	flows, mass := make([][]float64, c.rows), make([][]float64, c.rows)
	for r := range mass {
		mass[r] = make([]float64, codes)
	}
	for _, in := range inputs {
		width := (in.units + c.v.Block - 1) / c.v.Block * c.v.Block
		leaf := tensor.Leaf{Table: tensor.NoParams, Use: uint32(len(c.uses)), Uses: uint32(in.uses), Width: uint32(width), Units: uint32(in.units)}
		sums := make([][]float64, c.rows)
		for r := range sums {
			sums[r] = make([]float64, in.units)
		}
		for range in.uses {
			pitch := width + c.rng.IntN(2)*c.v.Block
			first := room(&c.kept, c.cap*pitch, poison)
			for r := range c.rows {
				for u := range width {
					x := float32(0)
					if u < in.units && !c.impossible(r) {
						x = c.rng.Float32() / float32(in.units*in.uses*len(inputs))
						sums[r][u] += float64(x)
					}
					c.kept[first+r*pitch+u] = x
				}
			}
			c.uses = append(c.uses, tensor.Use{Kept: uint64(first), Width: uint32(pitch)})
		}
		if codes > 0 {
			c.table(&leaf, codes, in, func(u, code int, p float64) {
				for r := range mass {
					mass[r][code] += p * sums[r][u]
				}
			})
		}
		for r := range flows {
			flows[r] = append(flows[r], sums[r]...)
		}
		c.leaves = append(c.leaves, leaf)
	}
	c.variables = append(c.variables, variable)
	if !chosen {
		c.offsets = append(c.offsets, tensor.NotChosen)
		return
	}
	c.offsets = append(c.offsets, c.offsets[0])
	elements := codes
	for r := range c.want {
		p, total := mass[r], 0.0
		for _, x := range flows[r] {
			total += x
		}
		if codes == 0 {
			p = flows[r]
		}
		for i := range p {
			p[i] /= total
		}
		if cell := int(c.codes[int(at)+r]); cell < codes {
			clear(p)
			p[cell] = 1
		}
		if c.impossible(r) {
			for i := range p {
				p[i] = math.NaN()
			}
		}
		c.want[r], elements = append(c.want[r], p...), len(p)
	}
	c.offsets[0] += uint32(elements)
}

// table gives an input a table, whose last row is that of missing cells.
func (c *columns) table(leaf *tensor.Leaf, codes int, in input, do func(unit, code int, p float64)) {
	width := int(leaf.Width)
	at := room(&c.params, (codes+1)*width, 0)
	leaf.Table = uint64(at)
	if in.exps {
		leaf.Exps = uint32(room(&c.params, (codes+1)*width, 0) - at)
	}
	for u := range in.units {
		p, total := make([]float64, codes), 0.0
		for k := range p {
			if p[k] = c.rng.Float64(); c.rng.IntN(5) == 0 {
				p[k] *= math.Exp2(-float64(c.rng.IntN(300)))
			}
			total += p[k]
		}
		for k := range p {
			x, cell := p[k]/total, at+k*width+u
			if in.exps {
				e := math.Floor(math.Log2(x))
				c.params[cell], c.params[cell+int(leaf.Exps)] = float32(math.Ldexp(x, -int(e))), float32(e)
			} else {
				c.params[cell] = float32(x)
			}
			do(u, k, x)
		}
		c.params[at+codes*width+u] = 1
	}
}

// check launches the kernels and compares what they write.
func (c *columns) check(t *testing.T) {
	t.Helper()
	length, tiles := int(c.offsets[0]), (c.rows+tensor.RowTile-1)/tensor.RowTile
	codes, units := []uint32{0, 1}, []uint32{0, 1}
	for i, v := range c.variables {
		if v.Codes == 0 {
			units = append(units, uint32(i), 0)
		}
		for k := uint32(0); k < v.Codes; k += tensor.PosteriorCodes {
			codes = append(codes, uint32(i), k)
		}
	}
	out := make([]float32, c.cap*length)
	for i := range out {
		out[i] = sentinel
	}
	control := make([]byte, tensor.ControlSize)
	binary.LittleEndian.PutUint32(control[tensor.ControlRows:], uint32(c.rows))
	var cells any = c.codes
	if !c.v.WideCodes {
		narrow := make([]uint16, len(c.codes))
		for i, x := range c.codes {
			narrow[i] = uint16(x)
		}
		cells = narrow
	}
	sums := []tensor.Sum{{Val: 1 << 40}, {Width: uint32(c.v.Block), Units: 1}}
	for _, l := range []struct {
		kernel string
		list   []uint32
	}{{tensor.KernelPosterior, codes}, {tensor.KernelPosteriorUnits, units}} {
		if len(l.list) == 2 {
			continue
		}
		launchLeaves(t, c.v, l.kernel, [3]int{len(l.list)/2 - 1, tiles, 1}, map[string]any{
			tensor.ArgControl: control, tensor.ArgParams: c.params, tensor.ArgCodes: cells, tensor.ArgKept: c.kept,
			tensor.ArgVal: c.val, tensor.ArgExp: c.exp, tensor.ArgBad: c.bad, tensor.ArgSums: records(sums, tensor.SumSize),
			tensor.ArgUses: records(c.uses, tensor.UseSize), tensor.ArgVariables: records(c.variables, tensor.VariableSize),
			tensor.ArgLeaves: records(c.leaves, tensor.LeafSize), tensor.ArgOffsets: c.offsets, tensor.ArgOut: out, tensor.ArgList: l.list,
		})
	}
	for r := range c.cap {
		for i, got := range out[r*length : (r+1)*length] {
			want := float64(sentinel)
			if r < c.rows {
				want = c.want[r][i]
			}
			// Sums of up to some hundred products of float32 numbers, of 1 in all.
			if x := float64(got); math.IsNaN(want) != math.IsNaN(x) || !(math.IsNaN(want) || math.Abs(x-want) <= 5e-7) {
				t.Fatalf("row %d, element %d of %d: %v, want %v", r, i, length, got, want)
			}
		}
	}
}

// TestPosteriors writes columns of codes on both sides of what a block of threads does, with
// several inputs whose flows come from several elements, and columns of functions.
func TestPosteriors(t *testing.T) {
	for _, size := range sizes() {
		for _, rows := range []int{1, 63, 64, 65, 130} {
			t.Run(fmt.Sprintf("size=%d/rows=%d", size, rows), func(t *testing.T) {
				c := newColumns(tensor.Variant{Block: size, Major: 8, Queries: true, WideCodes: rows == 130}, rows)
				c.column(1, 0.7, true, input{1, 1, false})
				c.column(63, 0.5, true, input{3 * size, 1, false})
				c.column(64, 0, true, input{size, 1, false}) // no cell is missing
				c.column(64, 0.3, true, input{2*size + 1, 2, false}, input{3, 1, true}, input{40, 3, false})
				c.column(65, 1, true, input{5*size - 1, 1, true}, input{1, 1, false})
				c.column(9, 1, false, input{7, 1, false}) // not chosen
				c.column(0, 1, true, input{33, 2, false})
				c.column(200, 0.1, true, input{70, 1, false})
				c.column(0, 1, true, input{1, 1, false}, input{size + 2, 3, false}, input{40, 1, false})
				c.column(0, 1, false, input{5, 1, false})
				c.check(t)
			})
		}
	}
}

// TestPosteriorsOfOne chooses a column of each sort alone.
func TestPosteriorsOfOne(t *testing.T) {
	for _, chosen := range []int{0, 1, 2, 3} {
		c := newColumns(tensor.Variant{Block: 16, Major: 8, Queries: true}, 70)
		c.column(70, 0.5, chosen == 0, input{20, 1, false})
		c.column(0, 1, chosen == 1, input{20, 1, false})
		c.column(3, 0.5, chosen == 2, input{20, 1, true})
		c.column(0, 1, chosen == 3, input{1, 1, false})
		c.check(t)
	}
}
