package compile

import (
	"fmt"
	"slices"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/layers"
)

// edgeBlock is a block of weights: row block and column block within its sum.
type edgeBlock struct{ row, col int32 }

// edges lists the edge blocks of every owning sum, in storage order: column
// block by column block, rows ascending. It counts the weights of each unit and
// lays the parameter buffer out.
func edges(s *state) (string, error) {
	p := s.prog
	size := p.BlockSize
	s.blks = make([][]edgeBlock, len(p.Sums))
	stored := int64(0) // weights of owners: those that edge blocks hold, while the report counts the edges of all sums
	for i := range p.Sums {
		sum := &p.Sums[i]
		if sum.Owner != int32(i) {
			o := &p.Sums[sum.Owner]
			sum.Param, sum.NumBlocks, sum.Fan, sum.Zeros = o.Param, o.NumBlocks, o.Fan, o.Zeros
			s.blks[i] = s.blks[sum.Owner]
			s.rep.Edges += fanSum(sum.Fan)
			continue
		}
		v := &p.Vectors[sum.Vector]
		id := s.nodes[sum.Vector].id
		cols := columnsOf(s.graph, p, id, sum)
		sum.Fan = make([]int32, v.Units)
		if e := s.graph.Nodes[id].Edges; e == nil {
			if err := s.room(int64(v.Count) * int64(cols.blocks)); err != nil {
				return "", err
			}
			s.blks[i] = denseBlocks(v.Count, cols.blocks)
			for u := range sum.Fan {
				sum.Fan[u] = int32(cols.units)
			}
		} else {
			blks, ok := sparseBlocks(e, cols, size, maxEdgeBlocks-int64(p.ParamBlocks))
			if !ok {
				return "", s.room(maxEdgeBlocks)
			}
			s.blks[i] = blks
			sum.Zeros = countFan(e, cols, size, s.blks[i], sum.Fan, v)
		}
		sum.NumBlocks = int32(len(s.blks[i]))
		sum.Param = p.ParamBlocks
		if err := s.room(int64(sum.NumBlocks)); err != nil {
			return "", err
		}
		p.ParamBlocks += sum.NumBlocks
		n := fanSum(sum.Fan)
		stored, s.rep.Edges = stored+n, s.rep.Edges+n
	}
	s.pmap.blks = s.blks
	s.needSoft()
	p.NumParams = p.ParamOffset(p.ParamBlocks)
	for i := range p.Inputs {
		in := &p.Inputs[i]
		if in.Owner != int32(i) {
			o := &p.Inputs[in.Owner]
			in.Table, in.Params, in.Exps, in.Zeros = o.Table, o.Params, o.Exps, o.Zeros
			continue
		}
		width := int64(p.Width(in.Vector))
		in.Table, in.Params, in.Exps = -1, -1, -1
		if in.Codes > 0 {
			in.Table = p.NumParams
			p.NumParams += p.TableRows(in) * width
		}
		exps := p.Columns[in.Column].Beside // densities have no common scale
		if !tableIsParams(in.Family) {
			in.Params = p.NumParams
			p.NumParams += int64(in.Family.NumParams()) * width
			exps = in.Codes > 0 && in.Family.NumParams() > 0 && !tableIsShares(in.Family)
		}
		if exps {
			in.Exps = p.NumParams
			p.NumParams += p.TableRows(in) * width
		}
		if z, ok := in.Family.(interface{ HasZeros() bool }); ok {
			in.Zeros = z.HasZeros()
		}
	}
	return fmt.Sprintf("%d weights in %d edge blocks, %d floats of parameters", stored, p.ParamBlocks-1, p.NumParams), nil
}

// room returns an error if n more edge blocks are too many.
func (s *state) room(n int64) error {
	if int64(s.prog.ParamBlocks)+n > maxEdgeBlocks {
		advice := "use a smaller circuit"
		if s.prog.BlockSize < maxBlockSize {
			advice = "use a larger compile.block_size or a smaller circuit"
		}
		return fmt.Errorf("%w: more than %d edge blocks of %d units; %s", ErrOptions, maxEdgeBlocks, s.prog.BlockSize, advice)
	}
	return nil
}

// tableIsParams reports whether parameter c of a family is the probability of
// code c, so that the table is all there is to store.
func tableIsParams(f layers.Family) bool {
	t, ok := f.(interface{ ParamsAreTable() bool })
	return ok && t.ParamsAreTable()
}

// tableIsShares reports whether the probabilities of a family's codes are shares of
// its parameters, so that float32 holds them as well as these.
func tableIsShares(f layers.Family) bool {
	t, ok := f.(interface{ TableIsShares() bool })
	return ok && t.TableIsShares()
}

func fanSum(fan []int32) (n int64) {
	for _, f := range fan {
		n += int64(f)
	}
	return n
}

// columns maps the canonical columns of a sum to its blocks.
type columns struct {
	start  []int // canonical column at which each child starts; a last entry for the end
	first  []int32
	units  int
	blocks int32
}

func columnsOf(g *circuit.Graph, p *layers.Program, id circuit.NodeID, sum *layers.Sum) columns {
	var c columns
	for k, child := range g.Nodes[id].Children {
		c.start = append(c.start, c.units)
		c.first = append(c.first, c.blocks)
		c.units += g.Nodes[child].Units
		c.blocks += p.Elements[sum.ElemLo+int32(k)].Count
	}
	c.start = append(c.start, c.units)
	return c
}

// at returns the column block and the offset in it of canonical column j, and
// the number of columns that follow without a gap, itself included.
func (c *columns) at(j, size int) (block int32, offset, run int) {
	k, ok := slices.BinarySearch(c.start, j)
	if !ok {
		k--
	}
	in := j - c.start[k]
	return c.first[k] + int32(in/size), in % size, min(size-in%size, c.start[k+1]-j)
}

func denseBlocks(rows, cols int32) []edgeBlock {
	blks := make([]edgeBlock, 0, int(rows)*int(cols))
	for c := range cols {
		for r := range rows {
			blks = append(blks, edgeBlock{r, c})
		}
	}
	return blks
}

// sparseBlocks lists the blocks of the program that edge blocks of the graph touch. It returns false where these are more than most, without
// memory for all of them.
func sparseBlocks(e *circuit.Edges, cols columns, size int, most int64) ([]edgeBlock, bool) {
	if int64(len(e.Pairs))*int64(e.Rows)*int64(e.Cols) > most*int64(size)*int64(size) { // weights, of which a block has no more
		return nil, false
	}
	keys := make([]uint64, 0, len(e.Pairs))
	distinct := func() bool {
		slices.Sort(keys)
		keys = slices.Compact(keys)
		return int64(len(keys)) <= most
	}
	full := max(len(e.Pairs), 1<<20) // keys, of which many may be equal
	for _, pr := range e.Pairs {
		r0, r1 := int(pr[0])*e.Rows/size, (int(pr[0]+1)*e.Rows-1)/size
		for j, end := int(pr[1])*e.Cols, int(pr[1]+1)*e.Cols; j < end; {
			cb, _, run := cols.at(j, size)
			for r := r0; r <= r1; r++ {
				keys = append(keys, uint64(cb)<<32|uint64(r))
			}
			if len(keys) > full {
				if !distinct() {
					return nil, false
				}
				full = max(full, 2*len(keys))
			}
			j += run
		}
	}
	if !distinct() {
		return nil, false
	}
	blks := make([]edgeBlock, len(keys))
	for i, k := range keys {
		blks[i] = edgeBlock{int32(k & 0xFFFFFFFF), int32(k >> 32)}
	}
	return blks, true
}

// countFan counts the weights of each unit of a block-sparse sum and reports
// whether listed blocks hold zeros other than padding units.
func countFan(e *circuit.Edges, cols columns, size int, blks []edgeBlock, fan []int32, v *layers.Vector) bool {
	per := e.Rows * e.Cols
	for b, pr := range e.Pairs {
		for r := range e.Rows {
			n := e.Cols
			if e.Mask != nil {
				n = 0
				for c := range e.Cols {
					if e.Has(b*per + r*e.Cols + c) {
						n++
					}
				}
			}
			fan[int(pr[0])*e.Rows+r] += int32(n)
		}
	}
	colUnits := make([]int32, cols.blocks) // units that exist in each column block
	for k := range cols.first {
		for j, n := 0, cols.start[k+1]-cols.start[k]; j < n; j += size {
			colUnits[cols.first[k]+int32(j/size)] = int32(min(size, n-j))
		}
	}
	var room int64
	for _, b := range blks {
		rows := min(int32(size), v.Units-b.row*int32(size))
		room += int64(rows) * int64(colUnits[b.col])
	}
	return room != fanSum(fan)
}
