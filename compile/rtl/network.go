package rtl

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/pce-engine/pce/circuit"
)

// The default passes see a circuit as a network of sums and selections of products. A product
// is a form: a number, tables and nodes that are multiplied. Tables stay apart until the
// network is lowered, so that leaves of different products can be packed together and factors
// that terms share can be found.

// form is scale · Π tables · Π args. A form without tables and args is a number.
type form struct {
	scale  float64
	tables []int32
	args   []int32
}

// nodeKind is what a node of a network computes from its forms.
type nodeKind uint8

const (
	group     nodeKind = iota // the value of its one form
	sumNode                   // the sum of its forms
	selection                 // the form that the code of a column chooses
)

type netNode struct {
	kind   nodeKind
	forms  []form
	column int     // of a selection
	choose []int32 // a form for each code
}

// network is a circuit as forms. Nodes come after those that they read.
type network struct {
	d     *Datapath // for columns and tables
	bits  int       // of tables that passes make
	loose bool      // shared products keep their tables apart, to be packed by each reader
	nodes []netNode
	known map[string]int32

	tables     []*table
	knownTable map[string]int32
}

// maxLoose bounds the tables of a shared product that each of its readers takes over.
const maxLoose = 64

// networkOf builds a network and returns it with the form of the root.
func networkOf(units []unit, d *Datapath, o *Options, loose bool) (*network, form) {
	n := &network{d: d, bits: o.TableBits, loose: loose, known: map[string]int32{}, knownTable: map[string]int32{}}
	forms := make([]form, len(units))
	for i := range units {
		u := &units[i]
		switch u.kind {
		case circuit.Input:
			forms[i] = n.ofTable(d.leafTable(u))
		case circuit.Product:
			forms[i] = n.product(units, u, forms)
		default:
			terms := make([]form, 0, len(u.args))
			for k, a := range u.args {
				f, w := forms[a], u.weights[k]
				if s := n.onlySum(f); s != nil && units[a].readers == 1 {
					for _, t := range s.forms {
						t.scale = d.product(t.scale, d.product(w, f.scale))
						terms = append(terms, t.clipped())
					}
					continue
				}
				f.scale = d.product(f.scale, w)
				if units[a].readers > 1 {
					f = f.clipped()
				}
				terms = append(terms, f)
			}
			forms[i] = n.sum(terms)
		}
		if u.readers > 1 {
			forms[i] = n.share(forms[i])
		}
	}
	return n, forms[len(units)-1]
}

// clipped is a form whose lists others read too: what is appended to them goes elsewhere.
func (f form) clipped() form {
	f.tables, f.args = slices.Clip(f.tables), slices.Clip(f.args)
	return f
}

// onlySum returns the sum that a form is but for its scale, nil if it is not one.
func (n *network) onlySum(f form) *netNode {
	if len(f.tables) == 0 && len(f.args) == 1 && n.nodes[f.args[0]].kind == sumNode {
		return &n.nodes[f.args[0]]
	}
	return nil
}

// product multiplies the forms of a unit's operands. A form that nothing else reads gives its
// lists away, so a chain of products takes linear time.
func (n *network) product(units []unit, u *unit, forms []form) form {
	f := form{scale: 1}
	for _, a := range u.args {
		g := forms[a]
		if units[a].readers > 1 {
			g.tables, g.args = slices.Clone(g.tables), slices.Clone(g.args)
		}
		if len(g.tables)+len(g.args) > len(f.tables)+len(f.args) {
			f, g = g, f
		}
		f.scale = n.d.product(f.scale, g.scale)
		f.tables = append(f.tables, g.tables...)
		f.args = append(f.args, g.args...)
	}
	return f
}

// share makes a node of what several readers would compute again.
func (n *network) share(f form) form {
	switch {
	case len(f.tables)+len(f.args) <= 1:
		return f
	case n.loose && len(f.tables) <= maxLoose:
		if len(f.args) > 1 {
			f.args = []int32{n.node(netNode{kind: group, forms: []form{{scale: 1, args: f.args}}})}
		}
		return f
	case len(f.args) == 0 && len(n.pack(f.tables)) == 1:
		return f
	}
	id := n.node(netNode{kind: group, forms: []form{{scale: 1, tables: f.tables, args: f.args}}})
	return form{scale: f.scale, args: []int32{id}}
}

// ofTable is a table as a form: a number if it has no columns.
func (n *network) ofTable(t *table) form {
	if len(t.columns) == 0 {
		return form{scale: t.values[0]}
	}
	return form{scale: 1, tables: []int32{n.table(t)}}
}

// table returns the number of a table that equals t, which it adds if there is none.
func (n *network) table(t *table) int32 {
	var key []byte
	for _, v := range t.columns {
		key = binary.LittleEndian.AppendUint32(key, uint32(v))
	}
	for _, x := range t.values {
		key = binary.LittleEndian.AppendUint64(key, math.Float64bits(x))
	}
	at, ok := n.knownTable[string(key)]
	if !ok {
		at = int32(len(n.tables))
		n.tables = append(n.tables, t)
		n.knownTable[string(key)] = at
	}
	return at
}

// node returns the number of a node that equals x, which it adds if there is none.
func (n *network) node(x netNode) int32 {
	key := []byte{byte(x.kind)}
	word := func(w uint64) { key = binary.AppendUvarint(key, w) }
	word(uint64(x.column))
	for i := range x.forms {
		f := &x.forms[i]
		slices.Sort(f.tables)
		slices.Sort(f.args)
		word(math.Float64bits(f.scale))
		for _, list := range [][]int32{f.tables, f.args} {
			word(uint64(len(list)))
			for _, a := range list {
				word(uint64(a))
			}
		}
	}
	for _, c := range x.choose {
		word(uint64(c))
	}
	at, ok := n.known[string(key)]
	if !ok {
		at = int32(len(n.nodes))
		n.nodes = append(n.nodes, x)
		n.known[string(key)] = at
	}
	return at
}

// sum adds terms: a selection where at most one of them is not 0, else without what all terms
// have in common, with tables of few columns added up beforehand.
func (n *network) sum(terms []form) form {
	if len(terms) == 1 {
		return terms[0]
	}
	if f, ok := n.deterministic(terms); ok {
		return f
	}
	common := commonArgs(terms)
	for i := range terms {
		terms[i].args = without(terms[i].args, common)
	}
	f := n.addTables(terms)
	f.args = append(slices.Clone(f.args), common...)
	return f
}

// addTables is the sum of terms. Those of tables only that fit one table become tables, and tables
// are added while their sum fits one.
func (n *network) addTables(terms []form) form {
	var tables []*table
	var rest []form
	constant := 0.0
	for _, f := range terms {
		switch t := n.fits(f); {
		case t == nil:
			rest = append(rest, f)
		case len(t.columns) == 0:
			constant += t.values[0]
		default:
			tables = n.addInto(tables, t)
		}
	}
	switch {
	case len(tables) == 0 && len(rest) == 0:
		return form{scale: constant}
	case len(tables) == 0 && constant > 0:
		rest = append(rest, form{scale: constant})
	case constant > 0:
		c := &table{values: []float64{constant}}
		tables[0] = n.d.plus(tables[0], c)
	}
	if len(tables) == 1 && len(rest) == 0 {
		return n.ofTable(tables[0])
	}
	for _, t := range tables {
		rest = append(rest, n.ofTable(t))
	}
	return form{scale: 1, args: []int32{n.node(netNode{kind: sumNode, forms: rest})}}
}

// addInto adds t to the first table with which it fits, or to the list.
func (n *network) addInto(tables []*table, t *table) []*table {
	for i, s := range tables {
		if cost, all := n.d.together(s.columns, t.columns); cost <= n.bits || all == max(len(s.columns), len(t.columns)) {
			tables[i] = n.d.plus(s, t)
			return tables
		}
	}
	return append(tables, t)
}

// fits is a form as one table, nil if that has too many bits or if the form has nodes.
func (n *network) fits(f form) *table {
	if len(f.args) > 0 {
		return nil
	}
	t := &table{values: []float64{f.scale}}
	for k, id := range f.tables {
		if k > 0 && n.d.cost(union(t.columns, n.tables[id].columns)) > n.bits {
			return nil
		}
		t = n.d.times(t, n.tables[id])
	}
	return t
}

// commonArgs lists the nodes that all terms multiply.
func commonArgs(terms []form) []int32 {
	common := slices.Clone(terms[0].args)
	for _, f := range terms[1:] {
		common = slices.DeleteFunc(common, func(a int32) bool { return !slices.Contains(f.args, a) })
	}
	return common
}

// without returns a copy of a list without some of its elements.
func without(list, gone []int32) []int32 {
	return slices.DeleteFunc(slices.Clone(list), func(a int32) bool { return slices.Contains(gone, a) })
}

// pack multiplies tables into fewer ones, each of at most n.bits bits unless a single one has more:
// the widest first, each into the first that has room.
func (n *network) pack(tables []int32) []*table {
	order := slices.Clone(tables)
	slices.SortStableFunc(order, func(a, b int32) int {
		return n.d.cost(n.tables[b].columns) - n.d.cost(n.tables[a].columns)
	})
	var packed []*table
next:
	for _, id := range order {
		t := n.tables[id]
		for i, p := range packed {
			if cost, all := n.d.together(p.columns, t.columns); cost <= n.bits || all == len(p.columns) {
				packed[i] = n.d.times(p, t)
				continue next
			}
		}
		packed = append(packed, t)
	}
	return packed
}
