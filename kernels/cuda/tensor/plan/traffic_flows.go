package plan

import (
	"math"

	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// reads says which parts of arrays a step has read before, and for what.
type reads map[readPart]bool

// readPart is a block of units of the ratios of a sum, or of an element's operands.
type readPart struct {
	why       readReason
	of, block uint32
}

type readReason byte

const (
	ratiosDown readReason = iota // to send flows down
	ratiosFlow                   // for parameter flows
	operandsFlow
)

// first reports whether a part has not been read before.
func (r reads) first(p readPart) bool {
	before := r[p]
	r[p] = true
	return !before
}

// through adds what a product of rows with outputs of that many columns takes of shared
// memory, in tiles of rows: it writes both sides and reads the rows once, the outputs
// once for each of four warps. In wide tiles each warp reads 64 rows and 32 outputs.
func (c *Cost) through(t *Tables, columns, outputs, tile, rows float64) {
	if t.Size < 16 {
		return
	}
	left, right := 1.0, 4.0
	if tile == tensor.WideRows {
		left, right = math.Ceil(outputs/32), 2
	}
	c.Shared += 4 * math.Ceil(rows/tile) * columns * (tile*(1+left) + outputs*(1+right))
}

// fill adds the multiplications of wide tiles with outputs and rows that do not exist:
// warps have 32 and 64.
func (c *Cost) fill(t *Tables, columns, outputs, rows float64) {
	c.Work += 2 * t.products() * columns * (math.Ceil(outputs/32)*32*math.Ceil(rows/tensor.WideRows)*tensor.WideRows - outputs*rows)
}

// backwardCost adds what a column of the flows down takes.
func (t *Tables) backwardCost(c *Cost, id uint32, tile, rows float64, read reads) {
	col := &t.Columns[id]
	outputs, columns := float64(col.Steps)*float64(t.Size), float64(col.Blocks)*float64(t.Size)
	tiles := math.Ceil(rows / tile)
	c.product(t, outputs*columns, rows)
	if tile == tensor.WideRows {
		c.fill(t, outputs, columns, rows)
	}
	c.through(t, outputs, columns, tile, rows)
	c.Shared += 4 * 2 * columns * rows // the sums, to those who send them on
	e := &t.Elements[col.Element]
	part := columns / float64(e.Width) * (t.productBytes(col.Element, rows) + t.downBytes(col.Element, rows))
	weights := 4 * outputs * columns
	c.Bytes += weights + part
	c.Cache += weights*tiles + 4*outputs*rows + part
	for _, step := range t.RowSteps[col.Step : col.Step+col.Steps] {
		if read.first(readPart{ratiosDown, col.Sum, step.Row}) {
			c.Bytes += 4 * float64(t.Size) * rows
		}
	}
}

// tileCost adds what the flows of a tile take, without matrix instructions.
func (t *Tables) tileCost(c *Cost, tile *tensor.Tile, rows float64, read reads) {
	size := float64(t.Size)
	outputs := float64(tile.Blocks) * size
	c.product(t, outputs*size, rows*float64(tile.Members))
	c.Bytes += 8 * outputs * size
	c.Cache += 8 * outputs * size
	for _, m := range t.Members[tile.Member : tile.Member+tile.Members] {
		for b := range tile.Blocks {
			t.readRatios(c, m, tile.Row+b*uint32(t.Size), rows, read)
		}
		t.readOperands(c, m, m.Column, rows, read)
	}
}

// patchCost adds what the flows of a patch take. Warps multiply whole shares of it if
// some of theirs exists, and stages hold all of it; each warp reads its units and its
// columns of a stage.
func (t *Tables) patchCost(c *Cost, p *tensor.Patch, edge int, rows float64, read reads) {
	size, members := float64(t.Size), float64(p.Members)
	outputs, columns := float64(p.Steps)*size, float64(p.Columns)*size
	c.Flop += 2 * outputs * columns * rows * members
	c.Bytes += 8 * outputs * columns
	c.Cache += 8 * outputs * columns
	for _, m := range t.Members[p.Member : p.Member+p.Members] {
		for _, step := range t.RowSteps[p.Step : p.Step+p.Steps] {
			t.readRatios(c, m, step.Row, rows, read)
		}
		for b := range p.Columns {
			t.readOperands(c, m, m.Column+b*uint32(t.Size), rows, read)
		}
		c.Cache += rows * (8 + 4*float64(t.Elements[m.Element].Count)) // marks, exponents, codes
	}
	units, across := float64(edge)/2, 32.0
	warps := math.Ceil(outputs/units) * math.Ceil(columns/across)
	stages := math.Ceil(rows/16) * 16 * members
	c.Work += 2 * t.products() * warps * units * across * stages
	c.Shared += 4 * (2*float64(edge) + warps*(units+across)) * stages
}

// leafCost adds what a run of units of an input takes, or a part of it: each part reads
// the flows of all rows, and then its share of the counts, which it wrote.
func (t *Tables) leafCost(c *Cost, kernel string, input, run uint32, rows float64) {
	in := &t.Inputs[input]
	units := float64(min(32, in.Width))
	flows, table := 4*units*rows*float64(in.Uses), 4*units*float64(in.Codes)
	shift := t.partShift()
	if shift == 0 || !t.parted(int(input)) {
		c.Bytes, c.Cache = c.Bytes+flows+2*table, c.Cache+flows+2*table
		return
	}
	table /= float64(int(1) << shift)
	if kernel == tensor.KernelLeafMove {
		c.Bytes, c.Cache, c.again = c.Bytes+3*table, c.Cache+3*table, c.again+table
		return
	}
	c.Bytes, c.Cache, c.again = c.Bytes+table, c.Cache+flows+table, c.again+table
	if run == tensor.LeafPart(run&0xffff, 0, shift) {
		c.Bytes += flows
	}
}

// readRatios adds the reads of a row block of a member's ratios.
func (t *Tables) readRatios(c *Cost, m tensor.Member, row uint32, rows float64, read reads) {
	b := 4 * float64(t.Size) * rows
	c.Cache += b
	if read.first(readPart{ratiosFlow, m.Sum, row}) {
		c.Bytes += b
	}
}

// readOperands adds the reads of the factors of a column block of a member's element.
func (t *Tables) readOperands(c *Cost, m tensor.Member, column uint32, rows float64, read reads) {
	b := float64(t.Size) / float64(t.Elements[m.Element].Width) * t.productBytes(m.Element, rows)
	c.Cache += b
	if read.first(readPart{operandsFlow, m.Element, column}) {
		c.Bytes += b
	}
}
