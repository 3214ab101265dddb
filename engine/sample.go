package engine

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/layers"
)

// Sample fills the missing cells of b with draws from the distribution given the
// row's observed cells. first is the number of b's first row in the whole
// request: a row's draws depend on seed, its number and its evidence alone. A row
// whose evidence is impossible keeps its missing cells.
func (e *Engine) Sample(ctx context.Context, b *dataset.Batch, seed uint64, first int) error {
	for lo := 0; lo < b.Rows; lo += e.rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		s := &sampler{Engine: e, batch: b, lo: lo, n: min(e.rows, b.Rows-lo), seed: seed, first: first}
		if err := s.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// sampler walks one launch of rows from the root down. unit[v][r] is the unit of
// vector v that row r takes, or -1.
type sampler struct {
	*Engine
	batch     *dataset.Batch
	lo, n     int
	first     int
	seed      uint64
	unit      [][]int32
	logs      map[int32][]float64 // log values by vector, from the first read until its own turn
	observed  []bool              // by row: some cell is observed
	weights   []float32
	rowBlocks map[int32]rowBlock // node block → where its children stand
}

type rowBlock struct {
	part *layers.SumPartition
	row  int
}

func (s *sampler) run(ctx context.Context) error {
	p := s.prog
	ll := make([]float64, s.n)
	if err := s.evaluate(ctx, s.batch, s.lo, s.lo+s.n, ll); err != nil {
		return err
	}
	s.logs = make(map[int32][]float64)
	s.unit = make([][]int32, len(p.Vectors))
	s.observed = make([]bool, s.n)
	s.rowBlocks = make(map[int32]rowBlock)
	for l := range p.Layers {
		for i := range p.Layers[l].Sums {
			q := &p.Layers[l].Sums[i]
			for k, id := range q.NodeIDs {
				s.rowBlocks[id] = rowBlock{q, k}
			}
		}
	}
	for _, c := range p.Columns {
		cells := &s.batch.Columns[c.Var]
		for r := range s.observed {
			s.observed[r] = s.observed[r] || !isMissing(cells, s.lo+r)
		}
	}
	root := s.take(p.Root)
	for r := range root {
		if !math.IsInf(ll[r], -1) {
			root[r] = 0
		}
	}
	for v := len(p.Vectors) - 1; v >= 0; v-- {
		delete(s.logs, int32(v)) // all that read it have had their turn
		if s.unit[v] == nil {
			continue
		}
		var err error
		switch d := p.Vectors[v].Def; p.Vectors[v].Kind {
		case layers.SumVector:
			err = s.sum(ctx, int32(v), &p.Sums[d])
		case layers.StoredVector:
			s.follow(p.Stored[d].Element, s.unit[v])
		case layers.InputVector:
			err = s.input(ctx, int32(v), &p.Inputs[d])
		}
		if err != nil {
			return err
		}
		s.unit[v] = nil
	}
	return nil
}

// take returns the units of a vector's rows, none taken at first.
func (s *sampler) take(v int32) []int32 {
	if s.unit[v] == nil {
		s.unit[v] = make([]int32, s.n)
		for i := range s.unit[v] {
			s.unit[v][i] = -1
		}
	}
	return s.unit[v]
}

// follow hands the units of an element down to its factors.
func (s *sampler) follow(e int32, unit []int32) {
	for _, f := range s.prog.ElementFactors(e) {
		u := s.take(f)
		for r, x := range unit {
			if x >= 0 {
				u[r] = x
			}
		}
	}
}

func (s *sampler) rng(row int, v int32) *rand.Rand {
	return rand.New(rand.NewPCG(s.seed^uint64(v)*0x9E3779B97F4A7C15, uint64(s.first+s.lo+row)))
}

// sum draws, for each row, an operand and a unit of it in proportion to weight
// times value.
func (s *sampler) sum(ctx context.Context, v int32, sum *layers.Sum) error {
	p := s.prog
	size := p.BlockSize
	n := int(sum.NumBlocks) * size * size
	if cap(s.weights) < n {
		s.weights = make([]float32, n)
	}
	w := s.weights[:n]
	base := p.ParamOffset(sum.Param)
	if err := s.ReadParams(ctx, base, w); err != nil {
		return err
	}
	elemOf := make(map[int32]int32) // element block → element
	taken := make(map[int32][]int32)
	for e := sum.ElemLo; e < sum.ElemHi; e++ {
		taken[e] = make([]int32, s.n)
		for r := range taken[e] {
			taken[e][r] = -1
		}
		for b := range p.Elements[e].Count {
			elemOf[p.Elements[e].First+b] = e
		}
	}
	var logW []float64
	for r, u := range s.unit[v] {
		if u < 0 {
			continue
		}
		rb := s.rowBlocks[p.Vectors[v].First+u/int32(size)]
		q := rb.part
		logW = logW[:0]
		top := math.Inf(-1)
		for k := rb.row * q.MaxChildren; k < (rb.row+1)*q.MaxChildren && q.ChildIDs[k] > 0; k++ {
			e := elemOf[q.ChildIDs[k]]
			off := int(q.ChildIDs[k]-p.Elements[e].First) * size
			at := int(p.ParamOffset(q.ParamIDs[k])-base) + int(u)%size*size
			units := int(p.Vectors[p.ElementFactors(e)[0]].Units)
			for j := range size {
				l := math.Inf(-1)
				if t := w[at+j]; t > 0 && off+j < units {
					l = math.Log(float64(t))
					for _, f := range p.ElementFactors(e) {
						x, err := s.logValue(ctx, f, r, off+j)
						if err != nil {
							return err
						}
						l += x
					}
				}
				top = max(top, l)
				logW = append(logW, l)
			}
		}
		total := 0.0
		for i, l := range logW {
			logW[i] = math.Exp(l - top)
			total += logW[i]
		}
		pick := s.rng(r, v).Float64() * total
		last := -1
		for i, x := range logW {
			if x > 0 {
				last = i
				if pick -= x; pick < 0 {
					break
				}
			}
		}
		if last < 0 {
			continue
		}
		child := q.ChildIDs[rb.row*q.MaxChildren+last/size]
		e := elemOf[child]
		taken[e][r] = (child-p.Elements[e].First)*int32(size) + int32(last%size)
	}
	for e := sum.ElemLo; e < sum.ElemHi; e++ {
		s.follow(e, taken[e])
	}
	return nil
}

// logValue returns the log value of a unit in a row; without evidence every
// value is 1.
func (s *sampler) logValue(ctx context.Context, v int32, r, unit int) (float64, error) {
	if !s.observed[r] {
		return 0, nil
	}
	units := int(s.prog.Vectors[v].Units)
	logs, ok := s.logs[v]
	if !ok {
		logs = make([]float64, s.n*units)
		a := kernels.InspectArgs{Params: s.params, Codes: s.codes, Values: s.values, Vector: int(v), Log: logs}
		if err := s.dev.Launch(ctx, s.kernels[kernels.Inspect], s.n, &a); err != nil {
			return 0, err
		}
		s.logs[v] = logs
	}
	return logs[r*units+unit], nil
}

// input draws the missing cells of a variable.
func (s *sampler) input(ctx context.Context, v int32, in *layers.Input) error {
	p := s.prog
	width := p.Width(v)
	np := in.Family.NumParams()
	area := make([]float32, np*width)
	at := in.Params
	if at < 0 {
		at = in.Table
	}
	if np > 0 {
		if err := s.ReadParams(ctx, at, area); err != nil {
			return err
		}
	}
	params := make([]float64, np)
	cells := &s.batch.Columns[p.Columns[in.Column].Var]
	for r, u := range s.unit[v] {
		if u < 0 || !isMissing(cells, s.lo+r) {
			continue
		}
		for k := range params {
			params[k] = float64(area[k*width+int(u)])
		}
		x := in.Family.Sample(params, s.rng(r, v))
		switch {
		case cells.Codes == nil:
			cells.Values[s.lo+r] = float32(x)
		case x >= 0 && x < dataset.Missing && x == math.Trunc(x):
			cells.Codes[s.lo+r] = uint16(x)
		default:
			return fmt.Errorf("%w: row %d, variable %d: the draw %v does not fit a column of codes; pass the column as values",
				dataset.ErrFormat, s.lo+r, p.Columns[in.Column].Var, x)
		}
	}
	return nil
}

func isMissing(c *dataset.Cells, row int) bool {
	if c.Codes != nil {
		return c.Codes[row] == dataset.Missing
	}
	return c.Values[row] != c.Values[row]
}
