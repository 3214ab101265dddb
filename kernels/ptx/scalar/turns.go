package scalar

import (
	"github.com/pce-engine/pce/kernels/ptx"
	"github.com/pce-engine/pce/kernels/simt"
)

// rolledOf returns the loop over a table that an instruction is, nil if it is none.
func (c *cuts) rolledOf(in *simt.Instr) *rolled {
	if in.Op != simt.Loop || in.Imm == 0 {
		return nil
	}
	return c.rolls[in.Imm-1]
}

// turns makes a loop over a table of weights. What is multiplied stays in registers; the sums lie one after the other in scratch
// memory, as registers have no index. Within a branch they are read back at once, else where they are needed.
func (g *generator) turns(r *rolled) {
	v := g.m.Types[r.sums[0]]
	t, size := typeOf(v), v.Bits()/8
	xs := make([]ptx.Value, len(r.args))
	for i, a := range r.args {
		xs[i] = g.reg(a)
	}
	at, offset := g.scratchAt(size), scratchRows*g.cuts.inner
	if !r.inner {
		at, offset = g.slot(r.sums[0])
	}
	step := scratchRows * size
	for i := range r.room(1) {
		switch {
		case i < len(r.firsts):
			g.Store(t, at, offset+i*step, g.use(r.firsts[i]))
		case r.firsts != nil:
			g.Store(t, at, offset+i*step, literal(v, 0))
		}
	}
	weights, sums, turn := g.Builder.Add(g.tables, r.table), g.Builder.Add(at, offset), g.Mov(ptx.U32, 0)
	g.Repeat(func() ptx.Value {
		wide := 16 / size
		var ready []ptx.Value
		n := 0
		weight := func() ptx.Value {
			if n%wide == 0 {
				ready = g.LoadN(t, wide, weights, n*size, "nc")
			}
			n++
			return ready[(n-1)%wide]
		}
		sum := make([]ptx.Value, r.turn)
		for k, x := range xs {
			for i := range sum {
				switch {
				case k > 0:
					sum[i] = g.FMA(x, weight(), sum[i])
				case r.firsts == nil:
					sum[i] = g.Builder.Mul(x, weight())
				default:
					sum[i] = g.FMA(x, weight(), g.Builder.Load(t, sums, i*step))
				}
			}
		}
		for i, s := range sum {
			g.Store(t, sums, i*step, s)
		}
		g.Into(weights).Add(weights, r.stride(size))
		g.Into(sums).Add(sums, r.turn*step)
		g.Into(turn).Add(turn, 1)
		return g.Lt(turn, r.count())
	})
	if r.inner {
		for i, s := range r.sums {
			g.set(s, g.Builder.Load(t, at, offset+i*step))
		}
	}
}
