package simt

import (
	"fmt"
	"slices"
)

// partWriter writes the module of a part.
type partWriter struct {
	*splitter
	to     *Module
	number []Value       // of values of the whole module in the part; None where they are not there
	set    []Value       // that are there
	memory []Value       // of reads
	kept   [numTypes]int // which of the kept inputs, or outputs, has a type
}

// Module returns the module of a part, counted from 0, which nothing keeps. Of the whole module's lists it shares the
// tables. It is safe for concurrent use.
func (p *Parts) Module(part int) *Module {
	if p.s == nil {
		return p.m
	}
	s := p.s
	w := &partWriter{splitter: s, to: &Module{
		Name: fmt.Sprintf("%s, part %d", s.m.Name, part+1), Inputs: slices.Clone(s.m.Inputs), Outputs: slices.Clone(s.m.Outputs), Tables: s.m.Tables,
	}}
	if old, ok := p.idle.Get().(*[]Value); ok {
		w.number = *old
	} else {
		w.number = slices.Repeat([]Value{None}, len(s.by))
	}
	for i, q := range p.Kept {
		w.kept[q.Type] = i
		in, out := q, q
		in.Name, out.Name = w.free("kept_"+q.Type.String()), w.free("keep_"+q.Type.String())
		w.to.Inputs, w.to.Outputs = append(w.to.Inputs, in), append(w.to.Outputs, out)
	}
	w.to.Body = make(Block, 0, s.size[part]+s.size[part]/8) // and what is repeated
	w.to.Types = make([]Type, 0, cap(w.to.Body))
	for _, i := range p.bodies[part] {
		w.top(&s.m.Body[i])
	}
	for _, v := range w.set {
		w.number[v] = None
	}
	p.idle.Put(&w.number)
	return w.to
}

// free returns a name that neither an input, an output nor a table has.
func (w *partWriter) free(name string) string {
	has := func(p Param) bool { return p.Name == name }
	for slices.ContainsFunc(w.m.Inputs, has) || slices.ContainsFunc(w.m.Outputs, has) || slices.ContainsFunc(w.m.Tables, func(t Table) bool { return t.Name == name }) {
		name += "_"
	}
	return name
}

// value adds a value.
func (w *partWriter) value(t Type) Value {
	w.to.Types = append(w.to.Types, t)
	return Value(len(w.to.Types) - 1)
}

func (w *partWriter) emit(t Type, in Instr) Value {
	in.Out = w.value(t)
	w.to.Body = append(w.to.Body, in)
	return in.Out
}

// top writes an instruction of the body, behind what it reads of other parts, and keeps what they read of it.
func (w *partWriter) top(in *Instr) {
	if in.Op == Const || in.Op == Load && w.copied[in.Out] > 0 {
		return // written where it is read
	}
	for _, v := range in.reads(&w.memory) {
		if w.by[v] >= 0 && w.number[v] == None {
			w.fetch(v)
		}
	}
	w.to.Body = append(w.to.Body, w.renumbered(in))
	for _, v := range in.Results() {
		if w.slots[v] >= 0 {
			w.keep(v)
		}
	}
}

// fetch makes a value that is not made in the part.
func (w *partWriter) fetch(v Value) {
	t := w.m.Types[v]
	w.set = append(w.set, v)
	if w.copied[v] > 0 {
		w.number[v] = w.emit(t, w.m.Body[w.copied[v]-1])
		return
	}
	word := keptType(t)
	w.number[v] = w.emit(word, Instr{Op: Load, Ref: len(w.m.Inputs) + w.kept[word], Imm: uint64(w.slots[v]), Args: [3]Value{None, None, None}})
	switch {
	case t == Pred:
		zero := w.emit(word, Instr{Op: Const, Args: [3]Value{None, None, None}})
		w.number[v] = w.emit(Pred, Instr{Op: Ne, Args: [3]Value{w.number[v], zero, None}})
	case t != word:
		w.number[v] = w.emit(t, Instr{Op: Convert, Args: [3]Value{w.number[v], None, None}})
	}
}

// keep stores a value for later parts; a pred as 1 or 0.
func (w *partWriter) keep(v Value) {
	x, t := w.number[v], w.m.Types[v]
	word := keptType(t)
	switch {
	case t == Pred:
		one := w.emit(word, Instr{Op: Const, Imm: 1, Args: [3]Value{None, None, None}})
		zero := w.emit(word, Instr{Op: Const, Args: [3]Value{None, None, None}})
		x = w.emit(word, Instr{Op: Select, Args: [3]Value{x, one, zero}})
	case t != word:
		x = w.emit(word, Instr{Op: Convert, Args: [3]Value{x, None, None}})
	}
	w.to.Body = append(w.to.Body, Instr{Op: Store, Out: None, Ref: len(w.m.Outputs) + w.kept[word], Imm: uint64(w.slots[v]), Args: [3]Value{x, None, None}})
}

// define numbers a value of the whole module.
func (w *partWriter) define(v Value) Value {
	w.number[v] = w.value(w.m.Types[v])
	w.set = append(w.set, v)
	return w.number[v]
}

func (w *partWriter) defineAll(list []Value) []Value {
	all := make([]Value, len(list))
	for i, v := range list {
		all[i] = w.define(v)
	}
	return all
}

func (w *partWriter) use(list []Value) []Value {
	all := make([]Value, len(list))
	for i, v := range list {
		all[i] = w.number[v]
	}
	return all
}

// renumbered returns a copy of an instruction whose values are those of the part.
func (w *partWriter) renumbered(in *Instr) Instr {
	c := *in
	for i := range in.Op.Args() {
		c.Args[i] = w.number[in.Args[i]]
	}
	block := func(b Block) Block {
		copied := slices.Grow(Block(nil), len(b))
		for i := range b {
			copied = append(copied, w.renumbered(&b[i]))
		}
		return copied
	}
	switch {
	case in.If != nil:
		b := *in.If
		b.Then = block(b.Then)
		b.ThenYield = w.use(b.ThenYield)
		b.Else = block(b.Else)
		b.ElseYield = w.use(b.ElseYield)
		b.Results = w.defineAll(b.Results)
		c.If = &b
	case in.Loop != nil:
		l := *in.Loop
		l.Init = w.use(l.Init)
		l.Carried = w.defineAll(l.Carried)
		l.Body = block(l.Body)
		l.Next, l.Continue = w.use(l.Next), w.number[l.Continue]
		l.Results = w.defineAll(l.Results)
		c.Loop = &l
	case in.Out != None:
		c.Out = w.define(in.Out)
	}
	return c
}
