package tensor_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/kernels/emulator"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// logNode is a vector of a small circuit: a table, a Gaussian, a sum or a stored
// product.
type logNode struct {
	kind         int // kindTable, or what a list says: 0 an input, 1 a sum, 2 a stored product
	width, units int
	factor       tensor.Factor
	index        int // of an input, or of a sum or stored product
	elements     []*logElement
	weights      []logWeight
	bands        []logBand
	users        []*logElement

	log  [][]float64 // by row and unit, log2
	flow [][]float64
}

const kindTable = -1

// logElement is a product.
type logElement struct {
	factors      []*logNode
	width, units int
	id, first    int // first: its first column in the sum
	kept         bool
	place        int // in kept
	flow         [][]float64
}

// logWeight is a weight above or at 0 of a unit and a column.
type logWeight struct{ unit, element, column, param int }

// logBand is a run of row blocks that read the same column blocks.
type logBand struct {
	blocks int
	reads  func(column int) bool // by block of columns, counted over all elements
}

// logCircuit is a circuit with its tables and its memory.
type logCircuit struct {
	size, rows int
	rng        *rand.Rand

	params, val, kept []float32
	values            []float32
	exp               []int32
	codes             []uint16
	factors           []tensor.Factor
	elements          []tensor.Element
	sums              []tensor.Sum
	groups            []tensor.Group
	steps             []tensor.Step
	columns           []tensor.Column
	rowSteps          []tensor.RowStep
	uses              []tensor.Use
	inputs            []tensor.Input
	constants         []float64
	nodes             []*logNode // in order, tables left out
	all               []*logElement
	pitch             int
	keep              bool // the flows of all elements
}

const sentinel = -12345

func newLogCircuit(size, rows int, seed uint64) *logCircuit {
	return &logCircuit{size: size, rows: rows, rng: rand.New(rand.NewPCG(seed, 6))}
}

// take makes a memory longer by n, from a multiple of 64 on.
func take[T any](s *[]T, n int, fill T) int {
	at := (len(*s) + 63) / 64 * 64
	for len(*s) < at+n {
		*s = append(*s, fill)
	}
	return at
}

func (c *logCircuit) widthOf(units int) int { return (units + c.size - 1) / c.size * c.size }

// table adds a table of categories with value(code, unit); the code after the last,
// for missing cells, reads 1 everywhere. A row in five misses its cell, and row 1.
func (c *logCircuit) table(units, codes int, value func(code, unit int) float32) *logNode {
	w := c.widthOf(units)
	n := &logNode{kind: kindTable, width: w, units: units}
	at, col := take(&c.params, (codes+1)*w, 0), take(&c.codes, c.rows, 0)
	for k := range codes {
		for u := range units {
			c.params[at+k*w+u] = value(k, u)
		}
	}
	for u := range w {
		c.params[at+codes*w+u] = 1
	}
	for r := range c.rows {
		c.codes[col+r] = uint16(c.rng.IntN(codes))
		if c.rng.IntN(5) == 0 || r == 1 {
			c.codes[col+r] = uint16(codes)
		}
	}
	n.factor = tensor.Factor{Base: uint64(at), Kind: tensor.TableFactor, At: uint32(col)}
	for r := range c.rows {
		row := make([]float64, units)
		for u := range row {
			row[u] = math.Log2(float64(c.params[at+int(c.codes[col+r])*w+u]))
		}
		n.log = append(n.log, row)
	}
	return n
}

// stored gives a vector its memory.
func (c *logCircuit) stored(n *logNode) {
	at, e := take(&c.val, c.rows*n.width, sentinel), take(&c.exp, c.rows, sentinel)
	n.factor = tensor.Factor{Base: uint64(at), At: uint32(e)}
	c.nodes = append(c.nodes, n)
	c.pitch = max(c.pitch, n.width)
}

// gaussian adds a function of a value.
func (c *logCircuit) gaussian(units int, spread float64) *logNode {
	n := &logNode{kind: 0, width: c.widthOf(units), units: units, index: len(c.inputs)}
	at, col := take(&c.params, 2*n.width, 1), take(&c.values, c.rows, 0)
	for u := range units {
		c.params[at+u] = float32(c.rng.NormFloat64() * spread)
		c.params[at+n.width+u] = float32(0.1 + c.rng.Float64())
	}
	c.stored(n)
	for r := range c.rows {
		x := float32(c.rng.NormFloat64() * spread)
		if c.rng.IntN(5) == 0 {
			x = float32(math.NaN())
		}
		c.values[col+r] = x
		row := make([]float64, units)
		for u := range row {
			if x == x {
				sd := float64(c.params[at+n.width+u])
				z := (float64(x) - float64(c.params[at+u])) / sd
				row[u] = (-z*z/2 - math.Log(sd) - math.Log(2*math.Pi)/2) * math.Log2E
			}
		}
		n.log = append(n.log, row)
	}
	c.inputs = append(c.inputs, tensor.Input{
		Params: uint64(at), Val: n.factor.Base, Exp: n.factor.At, Width: uint32(n.width), Units: uint32(units),
		Family: tensor.FamilyGaussian, At: uint32(col),
	})
	return n
}

// breaks adds a histogram with breaks of its own, whose floor is far below its bins.
func (c *logCircuit) breaks(units int) *logNode {
	n := &logNode{kind: 0, width: c.widthOf(units), units: units, index: len(c.inputs)}
	l := circuit.RealHistogram{Breaks: []float64{-1, 0, 0.5, 2, 2.5}, Floor: 1e-30}
	bins := l.NumParams()
	at, col := take(&c.params, bins*n.width, 1), take(&c.values, c.rows, 0)
	p := make([][]float64, units)
	for u := range p {
		for b := range bins {
			x := c.rng.Float32()
			c.params[at+b*n.width+u] = x
			p[u] = append(p[u], float64(x))
		}
	}
	c.stored(n)
	for r := range c.rows {
		x := float32(c.rng.NormFloat64())
		switch c.rng.IntN(5) {
		case 0:
			x = float32(math.NaN())
		case 1:
			x = float32(l.Breaks[c.rng.IntN(len(l.Breaks))])
		}
		c.values[col+r] = x
		row := make([]float64, units)
		for u := range row {
			if x == x {
				row[u] = l.LogProb(p[u], float64(x)) * math.Log2E
			}
		}
		n.log = append(n.log, row)
	}
	c.inputs = append(c.inputs, tensor.Input{
		Params: uint64(at), Val: n.factor.Base, Exp: n.factor.At, Width: uint32(n.width), Units: uint32(units),
		Family: tensor.FamilyRealHistogram, At: uint32(col), Stats: uint32(bins), Constant: uint32(len(c.constants)),
	})
	c.constants = append(c.constants, l.Constants()...)
	return n
}

// times makes an element.
func (c *logCircuit) times(factors ...*logNode) *logElement {
	e := &logElement{factors: factors, width: factors[0].width, units: factors[0].units, id: len(c.all)}
	for _, f := range factors {
		f.users = append(f.users, e)
	}
	c.all = append(c.all, e)
	return e
}

// product adds a stored product.
func (c *logCircuit) product(factors ...*logNode) *logNode {
	n := &logNode{kind: 2, elements: []*logElement{c.times(factors...)}}
	n.width, n.units = n.elements[0].width, n.elements[0].units
	c.add(n)
	return n
}

// sum adds a sum with a weight for each unit and column that its bands hold; without
// bands every unit reads all. Where twin is given, of the same shape, it has its weights.
func (c *logCircuit) sum(units int, twin *logNode, bands []logBand, weight func(unit, column int) float32, elements ...*logElement) *logNode {
	n := &logNode{kind: 1, width: c.widthOf(units), units: units, elements: elements, bands: bands}
	if bands == nil {
		n.bands = []logBand{{n.width / c.size, func(int) bool { return true }}}
	}
	c.add(n)
	sum := &c.sums[n.index]
	sum.Group, sum.Column = uint32(len(c.groups)), uint32(len(c.columns))
	s, row := c.size, 0
	at := map[[2]int]int{} // edge block of a row and a column block
	var twins []tensor.Group
	if twin != nil {
		t := c.sums[twin.index]
		twins = c.groups[t.Group : t.Group+t.Groups]
	}
	for i, b := range n.bands {
		g := tensor.Group{Sum: uint32(n.index), Row: uint32(row * s), Blocks: uint32(b.blocks), Step: uint32(len(c.steps))}
		block := 0
		for _, e := range elements {
			for col := 0; col < e.width; col += s {
				if b.reads(block) {
					c.steps = append(c.steps, tensor.Step{Element: uint32(e.id), Column: uint32(col)})
				}
				block++
			}
		}
		g.Steps = uint32(len(c.steps)) - g.Step
		steps := c.steps[g.Step:]
		if twin == nil && i%2 == 1 { // the order of steps is the program's
			c.rng.Shuffle(len(steps), func(a, b int) { steps[a], steps[b] = steps[b], steps[a] })
		}
		for k := range steps {
			st := &steps[k]
			if twin != nil {
				st.Param = c.steps[int(twins[i].Step)+k].Param
			} else {
				p := take(&c.params, b.blocks*s*s+s*s, 0)
				st.Param = uint32((p + s*s - 1) / (s * s))
			}
			e := c.all[st.Element]
			for o := range b.blocks * s {
				at[[2]int{row + o/s, (e.first + int(st.Column)) / s}] = int(st.Param) + o/s
				for j := range s {
					w := logWeight{row*s + o, int(st.Element), int(st.Column) + j, int(st.Param)*s*s + o*s + j}
					if w.unit >= units || w.column >= e.units {
						continue
					}
					if twin == nil {
						c.params[w.param] = weight(w.unit, e.first+w.column)
					}
					n.weights = append(n.weights, w)
				}
			}
		}
		c.groups = append(c.groups, g)
		row += b.blocks
	}
	for _, e := range elements {
		c.addColumns(n, e, at)
	}
	sum = &c.sums[n.index]
	sum.Groups, sum.Columns = uint32(len(c.groups))-sum.Group, uint32(len(c.columns))-sum.Column
	return n
}

// addColumns adds the columns of an element, whose edge blocks are given by row and
// column block of the sum: as long runs as one stride allows.
func (c *logCircuit) addColumns(n *logNode, e *logElement, at map[[2]int]int) {
	s := c.size
	rows := n.width / s
	same := func(a, b int) (stride int, ok bool) { // column blocks of the sum
		stride = -1
		for r := range rows {
			x, hasX := at[[2]int{r, a}]
			y, hasY := at[[2]int{r, b}]
			if hasX != hasY || hasX && (y < x || stride >= 0 && y-x != stride) {
				return 0, false
			}
			if hasX {
				stride = y - x
			}
		}
		return max(stride, 0), true
	}
	first := e.first / s
	for b := 0; b < e.width/s; {
		col := tensor.Column{Sum: uint32(n.index), Element: uint32(e.id), Column: uint32(b * s), Blocks: 1, Step: uint32(len(c.rowSteps))}
		for r := range rows {
			if p, ok := at[[2]int{r, first + b}]; ok {
				c.rowSteps = append(c.rowSteps, tensor.RowStep{Row: uint32(r * s), Param: uint32(p)})
			}
		}
		col.Steps = uint32(len(c.rowSteps)) - col.Step
		for next := b + 1; next < e.width/s; next++ {
			stride, ok := same(first+next-1, first+next)
			if !ok || col.Blocks > 1 && uint32(stride) != col.Stride {
				break
			}
			col.Stride = uint32(stride)
			col.Blocks++
		}
		b += int(col.Blocks)
		c.columns = append(c.columns, col)
	}
}

// add gives a sum or a stored product its record and its memory.
func (c *logCircuit) add(n *logNode) {
	n.index = len(c.sums)
	c.stored(n)
	cols := 0
	for _, e := range n.elements {
		e.first = cols
		cols += e.width
	}
	c.pitch = max(c.pitch, cols)
	c.sums = append(c.sums, tensor.Sum{
		Val: n.factor.Base, Exp: n.factor.At, Width: uint32(n.width), Units: uint32(n.units),
		Element: uint32(n.elements[0].id), Elements: uint32(len(n.elements)), Cols: uint32(cols),
	})
}

// finish makes the tables of elements, factors and uses; the last vector is the root.
func (c *logCircuit) finish() {
	root := c.nodes[len(c.nodes)-1]
	c.sums[root.index].Root = 1
	for _, n := range c.nodes {
		for _, e := range n.users {
			e.kept = e.kept || n.kind != 1 || len(n.users) > 1 || c.rng.IntN(3) == 0
		}
	}
	for _, n := range c.nodes {
		for _, e := range n.elements {
			if n.kind == 2 {
				e.kept = true
			}
		}
	}
	for _, e := range c.all {
		e.kept = e.kept || c.keep
		record := tensor.Element{
			Kept: tensor.NotKept, Formed: tensor.NotKept, Factor: uint32(len(c.factors)), Count: uint32(len(e.factors)),
			Width: uint32(e.width), Units: uint32(e.units),
		}
		if e.kept {
			e.place = take(&c.kept, c.rows*e.width, sentinel)
			record.Kept = uint64(e.place)
		}
		for _, f := range e.factors {
			r := f.factor
			if f.kind == 1 && len(f.users) == 1 {
				r.Down = tensor.DownRatio
			}
			c.factors = append(c.factors, r)
		}
		c.elements = append(c.elements, record)
	}
	c.kept = append(c.kept, sentinel) // there may be none
	for _, n := range c.nodes {
		if n.kind == 0 || n.kind == 1 && len(n.users) == 1 && !n.users[0].kept {
			continue
		}
		sum := &c.sums[n.index]
		sum.User, sum.Users = uint32(len(c.uses)), uint32(len(n.users))
		for _, e := range n.users {
			c.uses = append(c.uses, tensor.Use{Kept: uint64(e.place), Width: uint32(e.width)})
		}
	}
}

// evaluate computes logs and flows in float64.
func (c *logCircuit) evaluate() {
	for _, n := range c.nodes {
		for r := range c.rows {
			if n.kind != 0 {
				n.log = append(n.log, c.logsOf(n, r))
			}
			n.flow = append(n.flow, make([]float64, n.units))
		}
	}
	for _, e := range c.all {
		for range c.rows {
			e.flow = append(e.flow, make([]float64, e.units))
		}
	}
	root := c.nodes[len(c.nodes)-1]
	for r := range c.rows {
		if !math.IsInf(root.log[r][0], -1) {
			root.flow[r][0]++
		}
		for i := len(c.nodes) - 1; i >= 0; i-- {
			n := c.nodes[i]
			switch n.kind {
			case 1:
				for _, w := range n.weights {
					e, f, theta := c.all[w.element], n.flow[r][w.unit], float64(c.params[w.param])
					if f > 0 && theta > 0 {
						e.flow[r][w.column] += f * math.Exp2(math.Log2(theta)+operandLog(e, r, w.column)-n.log[r][w.unit])
					}
				}
			case 2:
				copy(n.elements[0].flow[r], n.flow[r])
			}
			for _, e := range n.elements {
				for _, f := range e.factors {
					for u := range e.units {
						if f.kind != kindTable {
							f.flow[r][u] += e.flow[r][u]
						}
					}
				}
			}
		}
	}
}

func operandLog(e *logElement, row, unit int) (l float64) {
	for _, f := range e.factors {
		l += f.log[row][unit]
	}
	return l
}

// logsOf returns the logs of a sum or a stored product in a row.
func (c *logCircuit) logsOf(n *logNode, row int) []float64 {
	logs := make([]float64, n.units)
	if n.kind == 2 {
		for u := range logs {
			logs[u] = operandLog(n.elements[0], row, u)
		}
		return logs
	}
	terms := make([][]float64, n.units)
	for _, w := range n.weights {
		if l := math.Log2(float64(c.params[w.param])) + operandLog(c.all[w.element], row, w.column); !math.IsInf(l, -1) {
			terms[w.unit] = append(terms[w.unit], l)
		}
	}
	for u := range logs {
		logs[u] = math.Inf(-1)
		top := math.Inf(-1)
		for _, l := range terms[u] {
			top = max(top, l)
		}
		total := 0.0
		for _, l := range terms[u] {
			total += math.Exp2(l - top)
		}
		if total > 0 {
			logs[u] = top + math.Log2(total)
		}
	}
	return logs
}

// run evaluates the marked rows on a card, backward too.
func (c *logCircuit) run(t *testing.T, marked []uint32, blocks int) *rowCard {
	t.Helper()
	c.finish()
	c.evaluate()
	v := tensor.Variant{Block: c.size, Major: 8}
	card := newRowCard(t, v, emulator.Options{Seed: c.rng.Uint64(), Approx: c.rng.Uint64(), Races: true})
	var list []uint32
	for _, n := range c.nodes {
		list = append(list, uint32(n.kind), uint32(n.index))
	}
	pitch := (c.pitch + 3) / 4 * 4
	card.put(tensor.ArgControl, control{Rows: uint32(c.rows), Pitch: uint32(pitch), Vectors: uint32(len(c.nodes))})
	card.put(tensor.ArgParams, c.params)
	card.put(tensor.ArgCodes, c.codes)
	card.put(tensor.ArgValues, c.values)
	card.put(tensor.ArgVal, c.val)
	card.put(tensor.ArgRatio, c.val) // the same shape, and not written yet
	card.put(tensor.ArgExp, c.exp)
	card.put(tensor.ArgKept, c.kept)
	card.put(tensor.ArgBadRows, append([]uint32{uint32(len(marked))}, marked...))
	card.put(tensor.ArgFactors, c.factors, tensor.FactorSize)
	card.put(tensor.ArgElements, c.elements, tensor.ElementSize)
	card.put(tensor.ArgSums, c.sums, tensor.SumSize)
	card.put(tensor.ArgGroups, c.groups, tensor.GroupSize)
	card.put(tensor.ArgSteps, c.steps, tensor.StepSize)
	card.put(tensor.ArgColumns, c.columns, tensor.ColumnSize)
	card.put(tensor.ArgRowSteps, c.rowSteps, tensor.RowStepSize)
	card.put(tensor.ArgUses, c.uses, tensor.UseSize)
	card.put(tensor.ArgInputs, c.inputs, tensor.InputSize)
	card.put(tensor.ArgConstants, append(c.constants, 0)) // an empty argument has no place
	card.put(tensor.ArgList, list)
	scratch, err := card.Alloc(int64(blocks * tensor.LogScratch * pitch * 4))
	card.check(err)
	card.memory[tensor.ArgScratch] = scratch
	card.launch(tensor.KernelLogForward, blocks)
	card.launch(tensor.KernelLogBackward, blocks)
	return card
}
