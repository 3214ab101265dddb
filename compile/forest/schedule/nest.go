package schedule

import (
	"fmt"
	"slices"
	"strings"
)

// Loop is a loop of a nest. It goes over what the loops of its dimension around it leave: of that it leaves out
// the first Skip, takes at most Most, and gives its body Step of them at a time.
type Loop struct {
	Name string
	Dim  string // Batch or Tree
	Skip int
	Most int // 0: all
	Step int // 1: single rows or trees
	Body []*Loop

	Unroll      bool
	Specialize  bool
	Dimension   string // of a card; "" for none
	Cache       bool
	Parallel    bool
	Interleave  int // iterations that are walked together; 0: one
	UnrollWalk  int // steps of a walk that are taken at a time; 0: one
	PeelWalk    int // first steps without a look for leaves
	Atomic      bool
	Shared      bool
	VectorWidth int // sums that are kept; 0: one
}

// Innermost reports whether the loop's body is a walk.
func (l *Loop) Innermost() bool { return len(l.Body) == 0 }

// Marks returns what verbs said about the loop, in words of the language.
func (l *Loop) Marks() []string {
	var m []string
	for _, x := range []struct {
		on   bool
		text string
	}{
		{l.Unroll, "unroll"}, {l.Specialize, "specialize"}, {l.Dimension != "", "gpuDimension " + l.Dimension}, {l.Cache, "cache"}, {l.Parallel, "parallel"},
		{l.Interleave > 0, fmt.Sprint("interleave ", l.Interleave)}, {l.UnrollWalk > 0, fmt.Sprint("unrollWalk ", l.UnrollWalk)},
		{l.PeelWalk > 0, fmt.Sprint("peelWalk ", l.PeelWalk)}, {l.Atomic, "atomicReduce"}, {l.Shared, "sharedReduce"},
		{l.VectorWidth > 0, fmt.Sprint("vectorReduce ", l.VectorWidth)},
	} {
		if x.on {
			m = append(m, x.text)
		}
	}
	return m
}

// Nest is what a legal schedule says: its loops, and what becomes of the forest before they are made.
type Nest struct {
	Loops     []*Loop // the outermost, one after the other
	Exact     bool
	Represent string // Array, Sparse, Reorg or Sliced
	SortTrees bool
	Pad       bool
	TileNodes int // nodes of a tile; 0: one
	TileHow   string
}

// Text returns the loops, indented, with what is said about each.
func (n *Nest) Text() string {
	var b strings.Builder
	if n.Exact {
		b.WriteString("exact\n")
	}
	fmt.Fprintf(&b, "represent %s\n", n.Represent)
	if n.SortTrees {
		b.WriteString("sortTrees\n")
	}
	if n.Pad {
		b.WriteString("pad\n")
	}
	if n.TileNodes > 0 {
		fmt.Fprintf(&b, "tileNodes %d %s\n", n.TileNodes, n.TileHow)
	}
	var write func(list []*Loop, indent string)
	write = func(list []*Loop, indent string) {
		for _, l := range list {
			fmt.Fprintf(&b, "%s%s", indent, l.Head())
			for _, m := range l.Marks() {
				b.WriteString(", " + m)
			}
			b.WriteByte('\n')
			write(l.Body, indent+"  ")
		}
	}
	write(n.Loops, "")
	return b.String()
}

// Head returns what the loop goes over, in words.
func (l *Loop) Head() string {
	s := fmt.Sprintf("for %s in %s", l.Name, l.Dim)
	if l.Skip > 0 {
		s += fmt.Sprintf(" from %d", l.Skip)
	}
	if l.Most > 0 {
		s += fmt.Sprintf(" at most %d", l.Most)
	}
	if l.Step > 1 {
		s += fmt.Sprintf(" by %d", l.Step)
	}
	return s
}

// Nest applies the verbs to the default loops. The first that is illegal is the error.
func (s *Schedule) Nest() (*Nest, error) {
	n := &Nest{Represent: Array, Loops: []*Loop{{Name: Batch, Dim: Batch, Step: 1, Body: []*Loop{{Name: Tree, Dim: Tree, Step: 1}}}}}
	a := &applier{Nest: n, taken: map[string]bool{Batch: true, Tree: true}, said: map[string]bool{}}
	if len(s.Verbs) > maxVerbs {
		return nil, fmt.Errorf("%w: %d verbs, want at most %d", ErrSchedule, len(s.Verbs), maxVerbs)
	}
	for i, v := range s.Verbs {
		wrong := v.check()
		if wrong == "" {
			wrong = a.apply(v)
		}
		if wrong != "" {
			return nil, fmt.Errorf("%w: verb %d, %q: %s", ErrSchedule, i+1, v.String(), wrong)
		}
	}
	if wrong := n.check(); wrong != "" {
		return nil, fmt.Errorf("%w: %s", ErrSchedule, wrong)
	}
	return n, nil
}

// applier applies verbs.
type applier struct {
	*Nest
	taken map[string]bool // names of loops that are or were
	said  map[string]bool // verbs about the whole forest
}

// find returns the list that holds a loop and its place there; nil where there is none of the name.
func find(list *[]*Loop, name string) (*[]*Loop, int) {
	for i, l := range *list {
		if l.Name == name {
			return list, i
		}
		if in, at := find(&l.Body, name); in != nil {
			return in, at
		}
	}
	return nil, 0
}

// apply returns why the verb is illegal, "" if it is not.
func (a *applier) apply(v Verb) string {
	switch v.Name {
	case "exact", "represent", "sortTrees", "pad", "tileNodes":
		if a.said[v.Name] {
			return "it is said already; say it once"
		}
		a.said[v.Name] = true
		a.whole(v)
		return ""
	case "reorder":
		return a.reorder(v.Args)
	}
	list, at := find(&a.Loops, v.Args[0])
	if list == nil {
		return fmt.Sprintf("no loop is named %s; there are %s", v.Args[0], strings.Join(a.names(), ", "))
	}
	l := (*list)[at]
	switch v.Name {
	case "tile", "split":
		if m := l.Marks(); len(m) > 0 {
			return fmt.Sprintf("%s is marked with %s, which would be lost; mark the new loops instead", l.Name, m[0])
		}
		for i, name := range v.Args[1:3] {
			if a.taken[name] || i == 1 && name == v.Args[1] {
				return fmt.Sprintf("a loop is or was named %s; take another name", name)
			}
		}
		a.taken[v.Args[1]], a.taken[v.Args[2]] = true, true
		if v.Name == "tile" {
			return a.tile(list, at, v)
		}
		return a.split(list, at, v)
	}
	return a.mark(l, v)
}

// names returns those of all loops, outermost first.
func (a *applier) names() (all []string) {
	each(a.Loops, func(l *Loop) { all = append(all, l.Name) })
	return all
}

// each calls visit with all loops, those around others first.
func each(list []*Loop, visit func(*Loop)) {
	for _, l := range list {
		visit(l)
		each(l.Body, visit)
	}
}

// whole applies a verb about the whole forest.
func (a *applier) whole(v Verb) {
	switch v.Name {
	case "exact":
		a.Exact = true
	case "represent":
		a.Represent = v.Args[0]
	case "sortTrees":
		a.SortTrees = true
	case "pad":
		a.Pad = true
	default:
		a.TileNodes, a.TileHow = v.size(0), v.Args[1]
	}
}

// tile replaces a loop by two, one within the other.
func (a *applier) tile(list *[]*Loop, at int, v Verb) string {
	l, n := (*list)[at], v.size(3)
	if n > maxSize/l.Step {
		return fmt.Sprintf("tiles of %d times %d, want at most %d", n, l.Step, maxSize)
	}
	inner := &Loop{Name: v.Args[2], Dim: l.Dim, Step: l.Step, Body: l.Body}
	(*list)[at] = &Loop{Name: v.Args[1], Dim: l.Dim, Skip: l.Skip, Most: l.Most, Step: n * l.Step, Body: []*Loop{inner}}
	return ""
}

// split replaces a loop by two, one after the other.
func (a *applier) split(list *[]*Loop, at int, v Verb) string {
	l, n := (*list)[at], v.size(3)
	if n > maxSize/l.Step || l.Skip > maxSize-n*l.Step {
		return fmt.Sprintf("a split after %d times %d, want at most %d", n, l.Step, maxSize)
	}
	n *= l.Step
	if l.Most > 0 && n >= l.Most {
		return fmt.Sprintf("%s has at most %d iterations, so nothing is left for %s; split earlier", l.Name, l.Most/l.Step, v.Args[2])
	}
	first := &Loop{Name: v.Args[1], Dim: l.Dim, Skip: l.Skip, Most: n, Step: l.Step, Body: l.Body}
	second := &Loop{Name: v.Args[2], Dim: l.Dim, Skip: l.Skip + n, Step: l.Step}
	if l.Most > 0 {
		second.Most = l.Most - n
	}
	count := 0
	each(a.Loops, func(*Loop) { count++ })
	each(l.Body, func(*Loop) { count++ })
	if count >= maxLoops {
		return fmt.Sprintf("more than %d loops", maxLoops)
	}
	wrong := ""
	second.Body = copies(l.Body, v.Args[2]+".", func(name string) {
		if a.taken[name] || len(name) > 200 {
			wrong = fmt.Sprintf("its copy %.60s would have a name that is taken or too long", name)
		}
		a.taken[name] = true
	})
	if wrong != "" {
		return wrong
	}
	*list = slices.Replace(*list, at, at+1, first, second)
	return ""
}

// copies copies loops under names with something in front.
func copies(list []*Loop, front string, named func(string)) []*Loop {
	var out []*Loop
	for _, l := range list {
		c := *l
		c.Name = front + l.Name
		named(c.Name)
		c.Body = copies(l.Body, front, named)
		out = append(out, &c)
	}
	return out
}

// reorder permutes neighbours.
func (a *applier) reorder(names []string) string {
	first := -1
	list, at := &a.Loops, 0
	for i, name := range names { // the outermost of them
		if slices.Contains(names[:i], name) {
			return fmt.Sprintf("%s is named twice", name)
		}
		in, k := find(&a.Loops, name)
		if in == nil {
			return fmt.Sprintf("no loop is named %s; there are %s", name, strings.Join(a.names(), ", "))
		}
		inside := 0
		each((*in)[k:k+1], func(l *Loop) {
			if slices.Contains(names, l.Name) {
				inside++
			}
		})
		if inside == len(names) {
			first, list, at = i, in, k
		}
	}
	if first < 0 {
		return "none of them is around all others; reorder neighbours"
	}
	chain := []*Loop{(*list)[at]}
	for len(chain) < len(names) {
		body := chain[len(chain)-1].Body
		if len(body) != 1 || !slices.Contains(names, body[0].Name) {
			return fmt.Sprintf("within %s is not one of them alone; reorder neighbours", chain[len(chain)-1].Name)
		}
		chain = append(chain, body[0])
	}
	inner := chain[len(chain)-1].Body
	order := make([]*Loop, len(names))
	for i, name := range names {
		k := slices.IndexFunc(chain, func(l *Loop) bool { return l.Name == name })
		for _, before := range order[:i] {
			if before.Dim == chain[k].Dim && before.Step <= chain[k].Step {
				return fmt.Sprintf("%s goes over tiles of %s, so it is around it", chain[k].Name, before.Name)
			}
		}
		if m := chain[k].Marks(); len(m) > 0 {
			return fmt.Sprintf("%s is marked with %s already; reorder before that", name, m[0])
		}
		order[i] = chain[k]
	}
	// What a split left for the outermost loop of a dimension is now for the one of it that is around the others: of each of its tiles
	// the same part would be left out.
	for _, dim := range []string{Batch, Tree} {
		of := func(l *Loop) bool { return l.Dim == dim }
		k := slices.IndexFunc(chain, of)
		if k < 0 {
			continue
		}
		was, now := chain[k], order[slices.IndexFunc(order, of)]
		skip, most := was.Skip, was.Most
		was.Skip, was.Most = 0, 0
		now.Skip, now.Most = skip, most
	}
	for i, l := range order[:len(order)-1] {
		l.Body = []*Loop{order[i+1]}
	}
	order[len(order)-1].Body = inner
	(*list)[at] = order[0]
	return ""
}

// Reassociates reports whether the loops add trees in another order than the model's.
func (n *Nest) Reassociates() bool {
	found := false
	each(n.Loops, func(l *Loop) { found = found || l.Atomic || l.Shared || l.VectorWidth > 0 })
	return found
}
