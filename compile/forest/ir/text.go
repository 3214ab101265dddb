package ir

import (
	"fmt"
	"strings"
)

// Text returns the operations as text, indented by their nesting.
func (f *Func) Text() string {
	p := printer{f: f}
	p.block(f.Body, "")
	return p.b.String()
}

type printer struct {
	f *Func
	b strings.Builder
}

func (p *printer) block(list []*Op, indent string) {
	for _, o := range list {
		p.op(o, indent)
	}
}

func names(list []Value) string {
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = name(v)
	}
	return strings.Join(words, ", ")
}

func name(v Value) string {
	if v == None {
		return "0"
	}
	return fmt.Sprintf("%%%d", v)
}

// op writes an operation with its body.
func (p *printer) op(o *Op, indent string) {
	p.b.WriteString(indent)
	if len(o.Out) > 0 && o.Kind != For {
		p.b.WriteString(names(o.Out) + " = ")
	}
	p.b.WriteString(o.Kind.String())
	switch o.Kind {
	case For:
		p.loop(o)
	case Repeat:
		fmt.Fprintf(&p.b, " %d", o.N)
		for i, c := range o.Carried {
			fmt.Fprintf(&p.b, " %s = %s", name(c), name(o.Args[i]))
		}
	case Buffers:
		p.buffers(indent)
		return
	default:
		if len(o.Args) > 0 {
			p.b.WriteString(" " + names(o.Args))
		}
		p.attributes(o)
	}
	if len(o.Body) == 0 {
		p.b.WriteByte('\n')
		return
	}
	p.b.WriteString(" {\n")
	p.block(o.Body, indent+"  ")
	switch o.Kind {
	case Repeat:
		fmt.Fprintf(&p.b, "%s  next %s until %s\n", indent, names(o.Next), names(o.Until))
	case WalkDecisionTree:
		fmt.Fprintf(&p.b, "%s  yield %s\n", indent, names(o.Next))
	}
	p.b.WriteString(indent + "}\n")
}

// loop writes what a loop goes over and what the schedule says about it.
func (p *printer) loop(o *Op) {
	text := strings.TrimPrefix(o.Loop.Head(), "for ")
	fmt.Fprintf(&p.b, " %s = %s", name(o.Out[0]), text)
	if o.Last > 0 {
		if o.Known {
			fmt.Fprintf(&p.b, ", trees %d to %d", o.First, o.Last)
		} else {
			fmt.Fprintf(&p.b, ", among trees %d to %d", o.First, o.Last)
		}
	}
	for _, m := range o.Loop.Marks() {
		p.b.WriteString(", " + m)
	}
}

// attributes writes what else an operation has.
func (p *printer) attributes(o *Op) {
	e := p.f.Ensemble
	switch o.Kind {
	case PredictEnsemble:
		fmt.Fprintf(&p.b, " : %d features, %d outputs, predicate %s", e.Features, e.Outputs, e.Predicate())
		if p.f.Nest.Exact {
			p.b.WriteString(", exact")
		}
		if !e.InOrder() {
			p.b.WriteString(", added in the model's order")
		}
	case Ensemble:
		fmt.Fprintf(&p.b, " : %d trees, tiles of %d nodes, %s", len(e.Trees), e.TileNodes, p.f.Nest.Represent)
		if p.f.Nest.TileNodes > 0 {
			p.b.WriteString(" " + p.f.Nest.TileHow)
		}
		for _, x := range []struct {
			on   bool
			text string
		}{{p.f.Nest.Pad, "padded"}, {p.f.Nest.SortTrees, "sorted by depth"}} {
			if x.on {
				p.b.WriteString(", " + x.text)
			}
		}
	case CacheRows, CacheTrees, GetTree, Within, Add:
		if o.N > 0 {
			fmt.Fprintf(&p.b, " + %d", o.N)
		}
	case WalkDecisionTree:
		fmt.Fprintf(&p.b, " : unrollDepth %d, peel %d, depth %d to %d", o.Unroll, o.Peel, o.Shallowest, o.Depth)
	case Compare:
		fmt.Fprintf(&p.b, " : %s", e.Predicate())
	}
}
