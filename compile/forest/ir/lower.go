package ir

import (
	"fmt"

	"github.com/pce-engine/pce/compile/forest/schedule"
)

// Lower makes the LIR of a function of the MIR: nodes become elements of the buffers of the representation that the
// schedule names, walks what they do on them. The result of a call is the sums, or the leaf of each tree if leaves is set.
func Lower(f *Func, leaves bool) (*Func, error) {
	layout, err := represent(f.Nest.Represent)
	if err != nil {
		return nil, err
	}
	buffers, err := layout.Buffers(f.Ensemble)
	if err != nil {
		return nil, err
	}
	out := &Func{Ensemble: f.Ensemble, Nest: f.Nest, Values: f.Values, layout: layout, buffers: buffers, keeps: leaves || !f.Ensemble.InOrder(), leaves: leaves}
	l := &lowering{f: out, tree: map[Value]tree{}, node: map[Value]node{}}
	b := &block{f: out}
	b.add(Op{Kind: Buffers}, 0)
	if err := l.block(b, f.Body); err != nil {
		return nil, err
	}
	out.Body = b.ops
	return out, nil
}

// tree is a tree of a lowered function: its place among the trees.
type tree struct {
	index Value
	n     int // after index
}

// node is a tile: its index, and what its first slot says of feature and flags, or of the leaf.
type node struct{ index, word Value }

type lowering struct {
	f    *Func
	row  Value
	tree map[Value]tree
	node map[Value]node
	kept []Value // what is kept of the present tree, if leaves are kept
}

// add returns a loop over rows that adds the trees of which leaves were kept, in the order of the model.
func (l *lowering) add() *Op {
	rows := &Op{Kind: For, Loop: &schedule.Loop{Name: "added", Dim: schedule.Batch, Step: 1, Parallel: parallel(l.f.Nest.Loops)}, Out: []Value{l.f.value()}}
	n := len(l.f.Ensemble.Trees)
	trees := &Op{Kind: For, Loop: &schedule.Loop{Name: "place", Dim: schedule.Tree, Step: 1}, Last: n, Known: true, Out: []Value{l.f.value()}}
	b := &block{f: l.f}
	at := b.one(LoadOrder, 0, trees.Out[0])
	leaf := b.one(LoadLeafValue, 0, b.one(LoadKept, 0, at))
	b.add(Op{Kind: Reduce, Args: []Value{b.one(LoadClass, 0, at), leaf}}, 0)
	trees.Body = b.ops
	rows.Body = []*Op{{Kind: Kernel, Body: []*Op{trees}}}
	l.f.added = rows
	return rows
}

// parallel reports whether a loop over rows is.
func parallel(list []*schedule.Loop) bool {
	for _, l := range list {
		if l.Dim == schedule.Batch && l.Parallel || parallel(l.Body) {
			return true
		}
	}
	return false
}

func (l *lowering) block(b *block, list []*Op) error {
	for _, o := range list {
		if err := l.op(b, o); err != nil {
			return err
		}
	}
	return nil
}

// at appends the place of a tree.
func (l *lowering) at(b *block, v Value) Value {
	t := l.tree[v]
	if t.n == 0 {
		return t.index
	}
	return b.one(Add, t.n, t.index)
}

// arrive returns a tile by its index, with its first slot loaded.
func (l *lowering) arrive(b *block, index, tree Value) node {
	return node{index, b.one(LoadFeatureIndex, 0, l.f.layout.Slot(b, index, tree))}
}

// op lowers an operation.
func (l *lowering) op(b *block, o *Op) error {
	switch o.Kind {
	case For, PredictEnsemble, Kernel, WalkDecisionTree:
		if o.Kind == PredictEnsemble {
			l.row = o.Args[1]
		}
		if o.Kind == WalkDecisionTree { // its steps take its place
			if err := l.block(b, o.Body); err != nil {
				return err
			}
			for i, v := range o.Out {
				l.node[v] = l.node[o.Next[i]]
			}
			return nil
		}
		in := &block{f: l.f}
		if err := l.block(in, o.Body); err != nil {
			return err
		}
		c := *o
		if c.Body = in.ops; o.Kind == PredictEnsemble && l.f.keeps && !l.f.leaves {
			c.Body = append(c.Body, l.add())
		}
		b.ops = append(b.ops, &c)
	case GetTree:
		l.tree[o.Out[0]] = tree{o.Args[1], o.N}
	case GetRoot:
		at := l.at(b, o.Args[0])
		l.node[o.Out[0]] = l.arrive(b, b.one(LoadRoot, 0, at), at)
	case TraverseTreeTile:
		l.node[o.Out[0]] = l.step(b, o)
	case IsLeaf:
		o := *o
		b.ops = append(b.ops, &Op{Kind: Negative, Args: []Value{l.node[o.Args[1]].word}, Out: o.Out})
	case Choose:
		yes, no := l.node[o.Args[1]], l.node[o.Args[2]]
		l.node[o.Out[0]] = node{b.one(Choose, 0, o.Args[0], yes.index, no.index), b.one(Choose, 0, o.Args[0], yes.word, no.word)}
	case Repeat:
		return l.repeat(b, o)
	case GetTreeClassID:
		if !l.f.keeps {
			b.ops = append(b.ops, &Op{Kind: LoadClass, Args: []Value{l.at(b, o.Args[0])}, Out: o.Out})
		}
	case GetLeafValue:
		if l.f.keeps {
			l.kept = []Value{l.at(b, o.Args[0]), l.node[o.Args[1]].word}
			break
		}
		b.ops = append(b.ops, &Op{Kind: LoadLeafValue, Args: []Value{l.node[o.Args[1]].word}, Out: o.Out})
	case Within:
		if !l.f.keeps {
			c := *o
			b.ops = append(b.ops, &c)
		}
	case Reduce:
		c := *o
		if l.f.keeps { // until all trees are walked; a tree behind the end is one that is kept in its turn, or the last again
			c.Kind, c.Args = KeepLeaf, l.kept
		}
		b.ops = append(b.ops, &c)
	default: // as it is
		c := *o
		b.ops = append(b.ops, &c)
	}
	return nil
}

// repeat lowers a loop whose nodes carry both of what they are.
func (l *lowering) repeat(b *block, o *Op) error {
	c := &Op{Kind: Repeat, N: o.N, Until: o.Until}
	for i, v := range o.Carried {
		from := l.node[o.Args[i]]
		now := node{l.f.value(), l.f.value()}
		l.node[v] = now
		c.Args, c.Carried = append(c.Args, from.index, from.word), append(c.Carried, now.index, now.word)
	}
	in := &block{f: l.f}
	if err := l.block(in, o.Body); err != nil {
		return err
	}
	c.Body = in.ops
	for i, v := range o.Next {
		n, end := l.node[v], node{l.f.value(), l.f.value()}
		c.Next, c.Out = append(c.Next, n.index, n.word), append(c.Out, end.index, end.word)
		l.node[o.Out[i]] = end
	}
	b.ops = append(b.ops, c)
	return nil
}

// step lowers the step from a tile to the one behind it.
func (l *lowering) step(b *block, o *Op) node {
	e := l.f.Ensemble
	from, at := l.node[o.Args[1]], l.at(b, o.Args[0])
	slot := l.f.layout.Slot(b, from.index, at)
	var answers []Value
	for k := range e.TileNodes {
		word, s := from.word, slot
		if k > 0 {
			s = b.one(Add, k, slot)
			word = b.one(LoadFeatureIndex, 0, s)
		}
		args := []Value{b.one(LoadCell, 0, l.row, word), b.one(LoadThreshold, 0, s), word}
		if len(e.Sets) > 0 {
			args = append(args, b.one(LoadSet, 0, s))
		}
		answers = append(answers, b.one(Compare, 0, args...))
	}
	var exit Value
	if e.TileNodes == 1 {
		exit = b.one(Exit, 0, answers[0])
	} else {
		exit = b.one(Exit, 0, append([]Value{b.one(LoadShape, 0, slot)}, answers...)...)
	}
	return l.arrive(b, l.f.layout.Child(b, from.index, at, exit), at)
}

// buffers writes the buffers of the LIR.
func (p *printer) buffers(indent string) {
	p.b.WriteString("\n")
	for _, x := range p.f.buffers {
		fmt.Fprintf(&p.b, "%s  %s %v %d\n", indent, x.Name, x.Type, len(x.Bits))
	}
}
