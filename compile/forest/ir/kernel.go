package ir

import (
	"fmt"
	"math"

	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/kernels/nest"
	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/simt/fold"
)

// emitter makes the code of a kernel.
type emitter struct {
	f         *Func
	k         *nest.Kernel
	b         *simt.Builder
	v         map[Value]simt.Value
	leaf      map[Value][]simt.Value // numbers of leaves
	known     map[simt.Value]int64   // integers that are constant
	tables    map[string]int
	x, kept   int
	thread    simt.Value // of the row's threads of a card: its number
	out       int
	sums      []simt.Value    // so far
	vector    *fold.Registers // in place of sums: of vectorReduce
	hi        simt.Value      // the end of the innermost loop
	whole     bool            // its trees fill all its turns
	cell, sum simt.Type
	flags     bool // features have flags
}

func newEmitter(f *Func, name string, k *nest.Kernel) *emitter {
	e := f.Ensemble
	m := &emitter{f: f, k: k, b: simt.NewBuilder(name), v: map[Value]simt.Value{}, leaf: map[Value][]simt.Value{}, known: map[simt.Value]int64{}, tables: map[string]int{}, cell: cellType(e), sum: sumType(e)}
	m.flags = e.Missing || e.Zeros || len(e.Sets) > 0
	return m
}

// kernel makes the code for the operations of a kernel, in a loop over single rows.
func (m *emitter) kernel(o *Op, trees bounds) error {
	e, b := m.f.Ensemble, m.b
	m.x = b.Input("x", m.cell, simt.Rows, e.Features)
	in := b.Input("sums", m.sum, simt.Columns, e.Outputs)
	first, end := -1, -1
	if m.k.Trees {
		first, end = b.Input("first", simt.I32, simt.Columns, 1), b.Input("end", simt.I32, simt.Columns, 1)
	}
	if m.k.Adds {
		m.kept = b.Input("kept", simt.I32, simt.Rows, len(e.Trees))
	}
	thread := -1
	if m.k.Share > 0 {
		thread = b.Input("thread", simt.I32, simt.Columns, 1)
	}
	if m.k.Keeps {
		m.out = b.Output("keeps", simt.I32, simt.Rows, len(e.Trees))
	} else {
		m.out = b.Output("total", m.sum, simt.Columns, e.Outputs)
		for k := range e.Outputs {
			m.sums = append(m.sums, b.Load(in, k))
		}
	}
	r := span{m.int(trees.first), m.int(trees.last), trees.most}
	if m.k.Trees {
		r = span{b.Load(first, 0), b.Load(end, 0), trees.most}
	}
	if m.k.Pages > 0 { // trees have numbers within the page, which begins with the first
		r = span{m.int(0), b.Sub(r.hi, r.lo), trees.most}
	}
	if m.k.Share > 0 {
		m.thread = b.Load(thread, 0)
	}
	m.hi = r.hi
	for _, x := range o.Body {
		if x.Kind != Kernel {
			continue
		}
		// A loop over trees around the kernel has its index here.
		m.indices(x.Body, r.lo)
		if err := m.block(x.Body, r); err != nil {
			return err
		}
	}
	for k, s := range m.sums {
		b.Store(m.out, k, s)
	}
	return nil
}

// indices gives the indices of loops around the kernel their value: the first tree that it was told.
func (m *emitter) indices(list []*Op, first simt.Value) {
	inside := map[Value]bool{}
	var visit func(list []*Op)
	visit = func(list []*Op) {
		for _, o := range list {
			for _, v := range append(append(o.Out[:len(o.Out):len(o.Out)], o.Carried...), o.Next...) {
				inside[v] = true
			}
			visit(o.Body)
		}
	}
	visit(list)
	var uses func(list []*Op)
	uses = func(list []*Op) {
		for _, o := range list {
			for _, v := range o.Args {
				if _, ok := m.v[v]; !ok && v != None && !inside[v] {
					m.v[v] = first
				}
			}
			uses(o.Body)
		}
	}
	uses(list)
}

// span is a range of trees, and how many they are at most.
type span struct {
	lo, hi simt.Value
	most   int
}

// int returns an integer constant, which is known.
func (m *emitter) int(x int) simt.Value {
	v := m.b.Int(simt.I32, int64(x))
	m.known[v] = int64(x)
	return v
}

// plus and times compute with integers, at once if they are known.
func (m *emitter) plus(x, y simt.Value) simt.Value {
	a, one := m.known[x]
	c, two := m.known[y]
	switch {
	case one && two:
		return m.int(int(a + c))
	case one && a == 0:
		return y
	case two && c == 0:
		return x
	}
	return m.b.Add(x, y)
}

func (m *emitter) times(x simt.Value, by int) simt.Value {
	if a, ok := m.known[x]; ok {
		return m.int(int(a) * by)
	}
	switch by {
	case 1:
		return x
	case 2:
		return m.b.Add(x, x)
	}
	return m.b.Mul(x, m.b.Int(simt.I32, int64(by)))
}

// gather looks up in a buffer, at once if the index is known.
func (m *emitter) gather(name string, index simt.Value) simt.Value {
	var buffer *Buffer
	for i := range m.f.buffers {
		if m.f.buffers[i].Name == name {
			buffer = &m.f.buffers[i]
		}
	}
	if at, ok := m.known[index]; ok && m.k.Pages == 0 {
		bits := buffer.Bits[min(max(int(at), 0), len(buffer.Bits)-1)]
		if buffer.Type == simt.I32 {
			return m.int(int(int32(bits)))
		}
		return m.b.Bits(buffer.Type, bits)
	}
	t, ok := m.tables[name]
	if !ok {
		t = m.b.Table(buffer.Type, buffer.Bits)
		m.tables[name] = t
	}
	return m.b.Gather(t, index)
}

func (m *emitter) block(list []*Op, r span) error {
	for _, o := range list {
		if err := m.op(o, r); err != nil {
			return err
		}
	}
	return nil
}

// op makes the code of an operation within a kernel.
func (m *emitter) op(o *Op, r span) error {
	b := m.b
	arg := func(i int) simt.Value { return m.v[o.Args[i]] }
	set := func(v simt.Value) { m.v[o.Out[0]] = v }
	switch o.Kind {
	case For:
		return m.loop(o, r)
	case Repeat:
		return m.repeat(o, r)
	case LoadRoot:
		set(m.gather("roots", arg(0)))
	case LoadOrder:
		set(m.gather("order", arg(0)))
	case LoadClass:
		if e := m.f.Ensemble; e.Outputs > 1 && !e.Vector() {
			set(m.gather("classes", arg(0)))
		}
	case LoadFeatureIndex:
		set(m.gather("features", arg(0)))
	case LoadThreshold:
		set(m.gather("thresholds", arg(0)))
	case LoadSet:
		set(m.gather("sets", arg(0)))
	case LoadShape:
		set(m.gather("shapes", arg(0)))
	case LoadChild:
		set(m.gather("children", arg(0)))
	case LoadCell:
		set(m.loadCell(m.v[o.Args[1]]))
	case Compare:
		set(m.compare(o))
	case Exit:
		set(m.exit(o))
	case Slot:
		set(m.slot(o))
	case Add:
		set(m.plus(arg(0), m.int(o.N)))
	case Child:
		set(m.child(o))
	case Negative:
		set(b.Binary(simt.Lt, arg(0), m.int(0)))
	case Choose:
		set(b.Select(arg(0), arg(1), arg(2)))
	case Within:
		if set(simt.None); !m.whole {
			set(b.Binary(simt.Lt, m.plus(arg(0), m.int(o.N)), m.hi))
		}
	case LoadLeafValue:
		for k := range leafWidth(m.f.Ensemble) {
			m.leaf[o.Out[0]] = append(m.leaf[o.Out[0]], m.gather(fmt.Sprintf("leaves%d", k), m.not(arg(0))))
		}
	case LoadKept:
		set(b.LoadAt(m.kept, arg(0)))
	case KeepLeaf:
		b.StoreAt(m.out, arg(0), arg(1))
	case Reduce:
		m.reduce(o)
	case CacheTrees: // refused before
	default:
		panic("BUG: ir: " + o.Kind.String() + " in a kernel")
	}
	return nil
}

// not returns the complement of an integer.
func (m *emitter) not(x simt.Value) simt.Value {
	if a, ok := m.known[x]; ok {
		return m.int(int(^a))
	}
	return m.b.Unary(simt.Not, x)
}

// loadCell returns the cell of a feature with flags. That of a leaf is any cell.
func (m *emitter) loadCell(word simt.Value) simt.Value {
	if w, ok := m.known[word]; ok && w >= 0 {
		return m.b.Load(m.x, int(w)&featureMask)
	}
	if m.flags {
		word = m.b.Binary(simt.And, word, m.int(featureMask))
	}
	return m.b.LoadAt(m.x, word)
}

// flag returns whether a word has a flag.
func (m *emitter) flag(word simt.Value, flag int) simt.Value {
	return m.b.Binary(simt.Ne, m.b.Binary(simt.And, word, m.int(flag)), m.int(0))
}

// compare returns whether a cell passes a node's test. A cell that is missing passes where the node says so, whatever
// the test.
func (m *emitter) compare(o *Op) simt.Value {
	e, b := m.f.Ensemble, m.b
	x, threshold, word := m.v[o.Args[0]], m.v[o.Args[1]], m.v[o.Args[2]]
	if e.Zeros {
		small := b.Binary(simt.Le, b.Unary(simt.Abs, x), b.Float(m.cell, forest.ZeroWithin))
		x = b.Select(b.Binary(simt.And, small, m.flag(word, flagZero)), b.Float(m.cell, math.NaN()), x)
	}
	how := simt.Lt
	if e.OrEqual {
		how = simt.Le
	}
	yes := b.Binary(how, x, threshold)
	missing := b.Binary(simt.Ne, x, x)
	if len(e.Sets) > 0 {
		rounded := b.Unary(simt.Floor, x)
		if e.Truncates {
			rounded = b.Select(m.flag(word, flagTruncated), x, rounded)
		}
		last := int64(e.SetFrom) + int64(len(e.Sets[0])) - 1
		c := b.Convert(simt.I32, rounded)
		c = b.Binary(simt.Min, b.Binary(simt.Max, c, b.Int(simt.I32, int64(e.SetFrom))), b.Int(simt.I32, last))
		c = b.Sub(c, b.Int(simt.I32, int64(e.SetFrom)))
		member := m.gather("members", b.Add(m.v[o.Args[3]], c))
		yes = b.Select(m.flag(word, flagSet), b.Binary(simt.Ne, member, m.int(0)), yes)
		yes = b.Binary(simt.And, yes, b.Unary(simt.Not, missing)) // NaN is no category
	}
	if e.Missing {
		yes = b.Binary(simt.Or, yes, b.Binary(simt.And, missing, m.flag(word, flagMissing)))
	}
	return yes
}

// exit returns the exit of a tile by the answers of its nodes.
func (m *emitter) exit(o *Op) simt.Value {
	if len(o.Args) == 1 {
		return m.b.Select(m.v[o.Args[0]], m.int(0), m.int(1))
	}
	answers := m.v[o.Args[0]]
	for k, a := range o.Args[1:] {
		answers = m.b.Binary(simt.Or, answers, m.b.Select(m.v[a], m.int(1<<k), m.int(0)))
	}
	return m.gather("exits", answers)
}

// slot returns where the nodes of a tile are.
func (m *emitter) slot(o *Op) simt.Value {
	e := m.f.Ensemble
	at := m.v[o.Args[0]]
	if o.Args[1] != None && m.reorg() {
		tree := m.v[o.Args[1]]
		if m.k.Keeps && !m.whole { // behind the end is the last tree once more, whose leaf is what is kept
			tree = m.least(tree, m.int(len(e.Trees)-1))
		}
		at = m.plus(m.times(at, len(e.Trees)), tree)
	}
	return m.times(at, e.TileNodes)
}

// reorg reports whether indices count the tiles of a tree.
func (m *emitter) reorg() bool {
	a, ok := m.f.layout.(*array)
	return ok && a.reorg
}

// child returns the index of the tile behind an exit.
func (m *emitter) child(o *Op) simt.Value {
	exit := m.v[o.Args[2]]
	if o.N == 0 { // from where the children start
		return m.plus(m.v[o.Args[0]], exit)
	}
	from := m.int(1)
	if !m.reorg() {
		from = m.plus(from, m.times(m.gather("roots", m.v[o.Args[1]]), -o.N))
	}
	return m.plus(m.plus(m.times(m.v[o.Args[0]], o.N+1), from), exit)
}

// reduce adds a leaf to the sums of its outputs.
func (m *emitter) reduce(o *Op) {
	e, b := m.f.Ensemble, m.b
	values := m.leaf[o.Args[1]]
	for k := range m.sums {
		x := values[min(k, len(values)-1)]
		if len(values) == 1 && e.Outputs > 1 {
			class := m.v[o.Args[0]]
			if at, ok := m.known[class]; !ok {
				x = b.Select(b.Binary(simt.Eq, class, m.int(k)), x, b.Float(m.sum, nothing))
			} else if int(at) != k {
				continue
			}
		}
		if len(o.Args) > 2 && m.v[o.Args[2]] != simt.None {
			x = b.Select(m.v[o.Args[2]], x, b.Float(m.sum, nothing))
		}
		if m.vector != nil {
			m.vector.Reduce(k, x)
		} else {
			m.sums[k] = b.Add(m.sums[k], x)
		}
	}
	if m.vector != nil {
		m.vector.Next()
	}
}
