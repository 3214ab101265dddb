package fold

import (
	"errors"
	"fmt"
	"slices"
)

// ErrNest means that a nest of loops is not valid.
var ErrNest = errors.New("fold: bad nest")

// Buffer is the elements that values are combined into.
type Buffer struct {
	Name  string
	Op    *Operator
	Sizes []int // of the dimensions; none for a single element
}

// elements is how many the buffer has.
func (b *Buffer) elements() int {
	n := 1
	for _, s := range b.Sizes {
		n *= s
	}
	return n
}

// Term is a part of an index: the iteration of a loop, times a stride of at least 1.
type Term struct {
	Loop   string
	Stride int
}

// Index is a sum of terms: where in a dimension an iteration is.
type Index []Term

// Item is one of its fields, the one that is not nil.
type Item struct {
	Loop      *Loop
	Reduce    *Reduce
	Fill      *Region
	Dimension *Dimension
}

// Loop runs its body for the iterations 0 to N-1; those of a parallel one may run at the same time.
type Loop struct {
	Name     string
	N        int
	Parallel bool
	Body     []Item
}

// Reduce combines a value into an element. What the value is, is the caller's: it is told Value and where the loops are.
type Reduce struct {
	Into  *Buffer
	At    []Index // of each dimension
	Value int
}

// Range is a part of a dimension: Size of it from where an index is.
type Range struct {
	From Index
	Size int
}

// Region is a part of a buffer. As an item it is set to the operator's initial element.
type Region struct {
	Buffer *Buffer
	Ranges []Range // of each dimension
}

// Dimension combines all of the first dimension of a buffer, for a range of each other one: reduce_dimension into a buffer
// that has these others as its dimensions, or without one, in place, into the first.
type Dimension struct {
	Of   *Region // whose first range is the whole dimension
	Into *Buffer // nil: in place
}

// Planned is a nest in which no two iterations that may run at the same time meet in an element.
type Planned struct {
	Body    []Item
	Private []*Buffer // that the plan added
}

// Conflicts returns the loops of a nest, those around others first, that are parallel and of which two iterations may
// combine into one element of a buffer.
func Conflicts(body []Item, into *Buffer) (found []*Loop) {
	for _, it := range body {
		if l := it.Loop; l != nil {
			if l.meets(into) {
				found = append(found, l)
			}
			found = append(found, Conflicts(l.Body, into)...)
		}
	}
	return found
}

// meets reports whether iterations of the loop may come to the same element at the same time: unless there is a dimension
// in which all reductions within it go equally far from one iteration to the next, and in an iteration less far than that.
func (l *Loop) meets(into *Buffer) bool {
	all := l.reductions(into)
	if !l.Parallel || l.N < 2 || len(all) == 0 {
		return false
	}
	for d := range into.Sizes {
		stride := all[0].r.At[d].stride(l.Name)
		apart := true
		for _, x := range all {
			_, span := x.split(d, l)
			apart = apart && x.r.At[d].stride(l.Name) == stride && span < stride && x.sameAround(d, all[0], l)
		}
		if apart {
			return false
		}
	}
	return true
}

// stride returns how far an index goes in an iteration of a loop.
func (x Index) stride(loop string) (sum int) {
	for _, t := range x {
		if t.Loop == loop {
			sum += t.Stride
		}
	}
	return sum
}

// access is a reduction within a loop, with the loops between.
type access struct {
	within []*Loop
	r      *Reduce
}

// split returns the terms of an index that are of loops around l, and how far the ones within l go together.
func (x access) split(d int, l *Loop) (around Index, span int) {
	for _, t := range x.r.At[d] {
		i := slices.IndexFunc(x.within, func(in *Loop) bool { return in.Name == t.Loop })
		switch {
		case i >= 0:
			span += t.Stride * max(x.within[i].N-1, 0)
		case t.Loop != l.Name:
			around = append(around, t)
		}
	}
	return around, span
}

// sameAround reports whether the loops around l move two reductions alike.
func (x access) sameAround(d int, y access, l *Loop) bool {
	a, _ := x.split(d, l)
	b, _ := y.split(d, l)
	for _, t := range append(a, b...) {
		if a.stride(t.Loop) != b.stride(t.Loop) {
			return false
		}
	}
	return true
}

// reductions returns those of a loop into a buffer.
func (l *Loop) reductions(into *Buffer) (all []access) {
	var visit func(list []Item, within []*Loop)
	visit = func(list []Item, within []*Loop) {
		for _, it := range list {
			switch {
			case it.Reduce != nil && it.Reduce.Into == into:
				all = append(all, access{within, it.Reduce})
			case it.Loop != nil:
				visit(it.Loop.Body, append(within[:len(within):len(within)], it.Loop))
			}
		}
	}
	visit(l.Body, nil)
	return all
}

// Plan gives the iterations of each conflicting loop elements of their own, and combines them behind the loop. Where such
// loops are within each other, the inner one's elements are combined into those of the outer one's iteration, and then
// these.
func Plan(body []Item) (*Planned, error) {
	p := &planner{names: map[string]bool{}}
	if err := p.check(body, nil); err != nil {
		return nil, err
	}
	out := &Planned{}
	out.Body = p.items(body, nil)
	out.Private = p.private
	return out, nil
}

type planner struct {
	names   map[string]bool
	private []*Buffer
}

// check reports what is wrong with a nest: a name that is used twice, an index of a loop that is not around it, or an
// element that the buffer does not have.
func (p *planner) check(list []Item, around []*Loop) error {
	for i := range list {
		switch it := &list[i]; {
		case it.Loop != nil && it.Reduce == nil:
			l := it.Loop
			if p.names[l.Name] || l.N < 0 || l.Name == "" {
				return fmt.Errorf("%w: loop %q of %d iterations: want a name of its own and 0 iterations or more", ErrNest, l.Name, l.N)
			}
			p.names[l.Name] = true
			if err := p.check(l.Body, append(around[:len(around):len(around)], l)); err != nil {
				return err
			}
		case it.Reduce != nil && it.Loop == nil:
			if err := checkReduce(it.Reduce, around); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%w: item %d is neither a loop nor a reduction, or both", ErrNest, i)
		}
	}
	return nil
}

func checkReduce(r *Reduce, around []*Loop) error {
	if r.Into == nil || r.Into.Op == nil || len(r.At) != len(r.Into.Sizes) {
		return fmt.Errorf("%w: a reduction without a buffer and operator, or with another number of indices", ErrNest)
	}
	for d, index := range r.At {
		last := 0
		for _, t := range index {
			at := slices.IndexFunc(around, func(l *Loop) bool { return l.Name == t.Loop })
			if at < 0 || t.Stride < 1 {
				return fmt.Errorf("%w: %s: dimension %d goes by %d times %q; want a loop around it and 1 or more", ErrNest, r.Into.Name, d, t.Stride, t.Loop)
			}
			last += t.Stride * max(around[at].N-1, 0)
		}
		if last >= r.Into.Sizes[d] {
			return fmt.Errorf("%w: %s: dimension %d goes up to %d of %d elements", ErrNest, r.Into.Name, d, last, r.Into.Sizes[d])
		}
	}
	return nil
}

// items returns items with the conflicts of their loops resolved, from the outermost loop in.
func (p *planner) items(list []Item, around []*Loop) (out []Item) {
	for _, it := range list {
		if it.Loop == nil {
			out = append(out, it)
			continue
		}
		l := *it.Loop
		own := map[*Buffer]*Buffer{} // of the iterations of l
		var shared []*Buffer
		l.Body = redirect(l.Body, func(r *Reduce) *Reduce {
			if own[r.Into] == nil {
				if !it.Loop.meets(r.Into) {
					return r
				}
				own[r.Into] = &Buffer{Name: r.Into.Name + "." + l.Name, Op: r.Into.Op, Sizes: append([]int{l.N}, r.Into.Sizes...)}
				shared = append(shared, r.Into)
			}
			return &Reduce{Into: own[r.Into], At: append([]Index{{{l.Name, 1}}}, r.At...), Value: r.Value}
		})
		regions := make([]*Region, len(shared))
		for i, b := range shared {
			regions[i] = touched(around, it.Loop, b, own[b])
			p.private = append(p.private, own[b])
			out = append(out, Item{Fill: regions[i]})
		}
		l.Body = p.items(l.Body, append(around[:len(around):len(around)], &l))
		out = append(out, Item{Loop: &l})
		for i, b := range shared {
			out = append(out, Item{Dimension: &Dimension{Of: regions[i], Into: b}})
		}
	}
	return out
}

// redirect copies items, with reductions changed.
func redirect(list []Item, change func(r *Reduce) *Reduce) (out []Item) {
	for _, it := range list {
		switch {
		case it.Reduce != nil:
			it.Reduce = change(it.Reduce)
		case it.Loop != nil:
			l := *it.Loop
			l.Body = redirect(l.Body, change)
			it.Loop = &l
		}
		out = append(out, it)
	}
	return out
}

// touched returns the part of a private buffer that a loop comes to, by where the loops around it are: all of its first
// dimension, and of each other one from the terms that all reductions have, as far as the rest of any goes.
func touched(around []*Loop, l *Loop, into, private *Buffer) *Region {
	g := &Region{Buffer: private, Ranges: []Range{{Size: l.N}}}
	all := l.reductions(into)
	for d, size := range into.Sizes {
		r := Range{Size: 1}
		for _, o := range around {
			stride := all[0].r.At[d].stride(o.Name)
			if stride > 0 && !slices.ContainsFunc(all, func(x access) bool { return x.r.At[d].stride(o.Name) != stride }) {
				r.From = append(r.From, Term{o.Name, stride})
			}
		}
		for _, x := range all {
			_, span := x.split(d, l)
			span += x.r.At[d].stride(l.Name) * (l.N - 1)
			for _, o := range around {
				if r.From.stride(o.Name) == 0 {
					span += x.r.At[d].stride(o.Name) * max(o.N-1, 0)
				}
			}
			r.Size = min(size, max(r.Size, span+1))
		}
		g.Ranges = append(g.Ranges, r)
	}
	return g
}
