package kerneltest

import (
	"context"
	"math"
	"testing"

	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// replay is one launch of Sample, and what is to be known to draw again by hand.
type replay struct {
	*launch
	ll []float64
	// recomputed values, as Forward counts them
	recomputed int64
	logs       [][]float64 // by vector: [rows, units], natural logs
	draws      tensor.Draws
	sums       map[int32]place // node block → where its children stand

	after []uint32 // codes
	units []int32  // of functions
}

// place is a row of a partition.
type place struct {
	part *layers.SumPartition
	row  int
}

// newReplay evaluates rows and samples on a device, by its kernels alone.
func newReplay(t *testing.T, open Open, c *randomCase, rows [][]float64, seed uint64, first int) *replay {
	t.Helper()
	dev := open(t)
	defer dev.Close()
	ctx := context.Background()
	p := &replay{launch: newLaunch(t, dev, c, rows, layers.Module{}), draws: tensor.NewDraws(seed, first), sums: map[int32]place{}}
	p.ll, p.recomputed = p.forward(t)
	for v := range p.prog.Vectors {
		log := make([]float64, p.rows*int(p.prog.Vectors[v].Units))
		must(t, p.own.Inspect(ctx, p.rows, &tensor.InspectArgs{Params: p.args.Params, Codes: p.args.Codes, Values: p.args.Values, Vector: v, Log: log}))
		p.logs = append(p.logs, log)
	}
	p.units = make([]int32, p.rows*len(p.prog.Functions()))
	must(t, p.own.Sample(ctx, p.rows, &tensor.SampleArgs{
		Params: p.args.Params, Codes: p.args.Codes, Values: p.args.Values, Seed: seed, First: first, Units: p.units,
	}))
	p.after = p.readCodes(t)
	for l := range p.prog.Layers {
		for i := range p.prog.Layers[l].Sums {
			q := &p.prog.Layers[l].Sums[i]
			for k, id := range q.NodeIDs {
				p.sums[id] = place{q, k}
			}
		}
	}
	return p
}

// nearEnd and nearCode say how close to the end of an operand, or of a code, a number
// may lie, relative to the sum of all, before it does not count: products of
// float32 numbers round to float32, and sums of a table's numbers to float64.
const (
	nearEnd  = 1e-5
	nearCode = 1e-11
)

// choice is the first of some masses whose sum up to there is above uniform times
// the sum of all, and whether the number lies within near of another.
func choice(masses []float64, uniform, near float64) (k int, unsure bool) {
	total, sum := 0.0, 0.0
	for _, x := range masses {
		total += x
	}
	goal := uniform * total
	for k = range masses {
		if sum += masses[k]; sum > goal {
			break
		}
	}
	return k, sum-goal < near*total || goal-(sum-masses[k]) < near*total
}

// row draws a row again and says whether a number lay near two choices; took is
// the unit of each vector that the row takes, -1 for none, codes what it draws.
func (p *replay) row(r int) (took []int32, codes map[int]uint32, unsure bool) {
	took, codes = make([]int32, len(p.prog.Vectors)), map[int]uint32{}
	for v := range took {
		took[v] = -1
	}
	if math.IsInf(p.ll[r], -1) {
		return took, codes, false
	}
	took[p.prog.Root] = 0
	for v := int32(len(took) - 1); v >= 0; v-- {
		vec := &p.prog.Vectors[v]
		unit, uniform, near := took[v], p.draws.Row(r).Uniform(v), false
		switch {
		case unit < 0:
			continue
		case vec.Kind == layers.StoredVector:
			p.hand(took, p.prog.Stored[vec.Def].Element, unit)
		case vec.Kind == layers.SumVector:
			near = p.sum(took, r, v, unit, uniform)
		case p.prog.Inputs[vec.Def].Codes > 0:
			in := &p.prog.Inputs[vec.Def]
			at := int(p.prog.Columns[in.Column].Slot)*p.rows + r
			if int32(p.codes[at]) != in.Codes {
				continue
			}
			masses := make([]float64, in.Codes)
			for c := range masses {
				cell := int64(c*p.prog.Width(v) + int(unit))
				masses[c] = float64(p.params[in.Table+cell])
				if in.Exps >= 0 {
					masses[c] = math.Ldexp(masses[c], int(p.params[in.Exps+cell]))
				}
			}
			var c int
			c, near = choice(masses, uniform, nearCode)
			codes[at] = uint32(c)
		}
		unsure = unsure || near
	}
	return took, codes, unsure
}

func (p *replay) hand(took []int32, element, unit int32) {
	for _, f := range p.prog.ElementFactors(element) {
		took[f] = unit
	}
}

// sum draws an operand of a sum.
func (p *replay) sum(took []int32, r int, v, unit int32, uniform float64) (unsure bool) {
	size := int32(p.prog.BlockSize)
	s := &p.prog.Sums[p.prog.Vectors[v].Def]
	at := p.sums[p.prog.Vectors[v].First+unit/size]
	type operand struct{ element, unit int32 }
	var operands []operand
	var masses []float64
	top := math.Inf(-1)
	q := at.part
	for k := at.row * q.MaxChildren; k < (at.row+1)*q.MaxChildren && q.ChildIDs[k] > 0; k++ {
		e := s.ElemLo
		for p.prog.Elements[e].First+p.prog.Elements[e].Count <= q.ChildIDs[k] {
			e++
		}
		for c := range size {
			o := operand{e, (q.ChildIDs[k]-p.prog.Elements[e].First)*size + c}
			theta := p.params[p.prog.ParamOffset(q.ParamIDs[k])+int64(unit%size*size+c)]
			l := math.Inf(-1)
			if theta > 0 {
				l = math.Log(float64(theta))
				for _, f := range p.prog.ElementFactors(e) {
					l += p.logs[f][r*int(p.prog.Vectors[f].Units)+int(o.unit)]
				}
			}
			operands, masses, top = append(operands, o), append(masses, l), max(top, l)
		}
	}
	for i, l := range masses {
		masses[i] = math.Exp(l - top)
	}
	k, unsure := choice(masses, uniform, nearEnd)
	p.hand(took, operands[k].element, operands[k].unit)
	return unsure
}

// check compares what the device drew with what is drawn by hand.
func (p *replay) check(t *testing.T) {
	t.Helper()
	functions, sure := p.prog.Functions(), 0
	want := make([]uint32, len(p.codes))
	copy(want, p.codes)
	for r := range p.rows {
		took, codes, unsure := p.row(r)
		if unsure {
			for at := r; at < len(want); at += p.rows {
				want[at] = p.after[at]
			}
			continue
		}
		sure++
		for at, c := range codes {
			want[at] = c
		}
		for i, f := range functions {
			if got, want := p.units[i*p.rows+r], took[p.prog.Inputs[f].Vector]; got != want {
				t.Errorf("row %d takes unit %d of input %d, want %d", r, got, f, want)
			}
		}
	}
	bad := 0
	for at := range want {
		if p.after[at] != want[at] {
			if bad++; bad <= 3 {
				t.Errorf("row %d, column %d: code %d became %d, want %d", at%p.rows, at/p.rows, p.codes[at], p.after[at], want[at])
			}
		}
	}
	if sure < p.rows*9/10 {
		t.Errorf("%d of %d rows have draws that are near others", p.rows-sure, p.rows)
	}
}
