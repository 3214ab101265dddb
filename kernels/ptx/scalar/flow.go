package scalar

import (
	"github.com/pce-engine/pce/kernels/ptx"
	"github.com/pce-engine/pce/kernels/simt"
)

// registers gives new registers to values that blocks set.
func (g *generator) registers(list []simt.Value) []ptx.Value {
	regs := make([]ptx.Value, len(list))
	for i, v := range list {
		regs[i] = g.Var(typeOf(g.m.Types[v]))
	}
	return regs
}

// put copies a value to a register.
func (g *generator) put(to ptx.Value, x any) {
	if b, ok := x.(int64); ok && to.Type == ptx.Pred {
		x = int(b)
	}
	g.Set(to, x)
}

// branch makes an If. Its results are registers that both sides set; what a side reads is never one
// of them.
func (g *generator) branch(in *simt.Instr) {
	b := in.If
	results := g.registers(b.Results)
	side := func(block simt.Block, yields []simt.Value) func() {
		return func() {
			g.inner(block)
			for i, v := range yields {
				g.put(results[i], g.use(v))
			}
		}
	}
	p := g.reg(in.Args[0])
	then, other := side(b.Then, b.ThenYield), side(b.Else, b.ElseYield)
	switch {
	case len(b.Else) == 0 && len(results) == 0:
		g.Builder.If(p, then)
	case len(b.Then) == 0 && len(results) == 0:
		g.Unless(p, other)
	default:
		g.IfElse(p, then, other)
	}
	for i, v := range b.Results {
		g.set(v, results[i])
	}
}

// loop makes a Loop, which has at least one turn. The carried values are registers for all turns; a
// next value that is in one of them is copied aside before the first of them changes.
func (g *generator) loop(l *simt.Repeat) {
	carried := g.registers(l.Carried)
	for i, v := range l.Init {
		g.put(carried[i], g.use(v))
		g.set(l.Carried[i], carried[i])
	}
	turn := func() ptx.Value {
		g.inner(l.Body)
		aside := func(x any) any {
			r, ok := x.(ptx.Value)
			if !ok {
				return x
			}
			for _, c := range carried {
				if r.Reg() == c.Reg() {
					return g.Mov(r.Type, r)
				}
			}
			return x
		}
		next := make([]any, len(l.Next))
		for i, v := range l.Next {
			x := g.use(v)
			if r, ok := x.(ptx.Value); !ok || r.Reg() != carried[i].Reg() {
				next[i] = aside(x)
			}
		}
		more := aside(g.reg(l.Continue)).(ptx.Value)
		for i, x := range next {
			if x != nil { // else it is there
				g.put(carried[i], x)
			}
		}
		return more
	}
	if l.Most == 1 {
		turn()
	} else {
		turns := g.Mov(ptx.U32, 0)
		g.Repeat(func() ptx.Value {
			more := turn()
			g.Into(turns).Add(turns, 1)
			return g.And(more, g.Lt(turns, l.Most))
		})
	}
	for i, v := range l.Results {
		g.set(v, carried[i])
	}
}
