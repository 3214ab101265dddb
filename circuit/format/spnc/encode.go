package spnc

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/circuit/format/units"
)

// The query of a model that comes from elsewhere, with the defaults of SPNC.
const (
	defaultQuery   = "batch=1 error=0 most=0.02 missing=false"
	defaultFeature = "float64"
)

// Write writes a model as a message of one segment, a unit of each node as a node. It is the query
// that the model has as MetaQuery among its strings, a network alone for Bare, and without that string a query as SPNC
// has by default, of cells of float64 unless MetaFeature says otherwise. What the format cannot hold is
// an error that matches format.ErrModel: other leaves than histograms over whole numbers with
// Floor, Gaussians and categories. lost says what else is not kept, such as names.
func Write(w io.Writer, m *format.Model) (lost []string, err error) {
	c, err := units.Of(m)
	if err != nil {
		return nil, err
	}
	query, feature := m.Meta[MetaQuery], m.Meta[MetaFeature]
	if query == "" {
		query, feature = defaultQuery, cmp.Or(feature, defaultFeature)
	}
	scope, lost := scopeOf(m)
	for key := range m.Meta {
		if key != MetaName && key != MetaFeature && key != MetaQuery {
			lost = append(lost, "the string "+strconv.Quote(key))
		}
	}
	slices.Sort(lost)
	e := &encoder{bits: make([]byte, word)}
	at := e.record(0, 1, 1) // the header
	if query == Bare {
		at++
	} else if at, err = e.query(at, query); err != nil {
		return nil, err
	}
	if err := e.network(at, c, scope, m.Meta[MetaName], feature); err != nil {
		return nil, err
	}
	if len(e.bits) > MaxBytes {
		return nil, fmt.Errorf("%w: it would take %d bytes, at most %d are read", format.ErrModel, len(e.bits), MaxBytes)
	}
	head := binary.LittleEndian.AppendUint32(make([]byte, 4, word), uint32(len(e.bits)/word))
	if _, err := w.Write(append(head, e.bits...)); err != nil {
		return nil, err
	}
	return lost, nil
}

// scopeOf returns the numbers of the variables, which their names say if all are V and a number,
// and what is not kept of the columns.
func scopeOf(m *format.Model) (scope []int32, lost []string) {
	seen := map[int32]bool{}
	for _, name := range m.Names {
		digits, ok := strings.CutPrefix(name, "V")
		v, err := strconv.ParseInt(digits, 10, 32)
		if !ok || err != nil || strconv.FormatInt(v, 10) != digits || seen[int32(v)] {
			scope = nil
			break
		}
		seen[int32(v)] = true
		scope = append(scope, int32(v))
	}
	switch {
	case scope == nil:
		for v := range m.Graph.NumVars {
			scope = append(scope, int32(v))
		}
		if m.Names != nil {
			lost = []string{"the names of the variables, in place of which it has numbers"}
		}
	case !slices.IsSorted(scope):
		lost = []string{"the order of the columns, which is that of their numbers"}
	}
	return scope, lost
}

// encoder builds a segment. Its first word is the pointer to the header.
type encoder struct{ bits []byte }

// alloc adds words of zeros and returns the number of the first.
func (e *encoder) alloc(words int) int {
	at := len(e.bits) / word
	e.bits = append(e.bits, make([]byte, words*word)...)
	return at
}

func (e *encoder) put(at int, bits uint64) { binary.LittleEndian.PutUint64(e.bits[at*word:], bits) }

// offset is that of a pointer at one word to another word, as pointers have it.
func offset(from, to int) uint64 { return uint64(uint32(to-from-1) << 2) }

// record adds a struct, to which the pointer at a word leads, and returns its first word.
func (e *encoder) record(pointer, data, pointers int) int {
	at := e.alloc(data + pointers)
	e.put(pointer, offset(pointer, at)|uint64(data)<<32|uint64(pointers)<<48)
	return at
}

// list adds a list of n elements in b.
func (e *encoder) list(pointer int, size uint64, n int, b []byte) {
	at := e.alloc((len(b) + word - 1) / word)
	copy(e.bits[at*word:], b)
	e.put(pointer, offset(pointer, at)|1|size<<32|uint64(n)<<35)
}

func (e *encoder) text(pointer int, s string) {
	if s != "" {
		e.list(pointer, sizeByte, len(s)+1, append([]byte(s), 0))
	}
}

func (e *encoder) ints(pointer int, xs []int32) {
	b := make([]byte, 0, 4*len(xs))
	for _, x := range xs {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	e.list(pointer, sizeFour, len(xs), b)
}

func (e *encoder) floats(pointer int, xs []float64) {
	b := make([]byte, 0, 8*len(xs))
	for _, x := range xs {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	e.list(pointer, sizeEight, len(xs), b)
}

// query writes a query from its text, and returns the word of the pointer to its network.
func (e *encoder) query(header int, text string) (int, error) {
	var batch int32
	var kind uint16
	var most float64
	var missing bool
	if _, err := fmt.Sscanf(text, "batch=%d error=%d most=%g missing=%t", &batch, &kind, &most, &missing); err != nil {
		return 0, fmt.Errorf("%w: the string %s is %.80q, which is not a query: %w", format.ErrModel, MetaQuery, text, err)
	}
	e.put(header, 1)
	q := e.record(header+1, 2, 1)
	e.put(q, uint64(uint32(batch))|uint64(kind)<<32)
	e.put(q+1, math.Float64bits(most))
	joint := e.record(q+2, 1, 1)
	if missing {
		e.put(joint, 1)
	}
	return joint + 1, nil
}

// network writes the network, to which the pointer at a word leads. Nodes have their numbers by
// their order, children first.
func (e *encoder) network(pointer int, c *units.Circuit, scope []int32, name, feature string) error {
	order := c.Order()
	number := make(map[units.Unit]int32, len(order))
	for i, x := range order {
		number[x] = int32(i)
	}
	at := e.record(pointer, 1, 4)
	e.put(at, uint64(len(order)-1)|uint64(len(scope))<<32)
	e.text(at+1, name)
	e.text(at+2, feature)
	e.ints(at+3, slices.Sorted(slices.Values(scope)))
	const size = 2 // words of a node
	list := e.alloc(1 + size*len(order))
	e.put(at+4, offset(at+4, list)|1|sizeStruct<<32|uint64(size*len(order))<<35)
	e.put(list, uint64(len(order))<<2|1<<32|1<<48)
	for i, x := range order {
		at := list + 1 + size*i
		kind, err := e.node(at+1, c, x, number, scope)
		if err != nil {
			return fmt.Errorf("%w: node %d: %w", format.ErrModel, x.Node, err)
		}
		root := uint64(0)
		if x == c.Root() {
			root = 1
		}
		e.put(at, uint64(i)|root<<32|uint64(kind)<<48)
	}
	return nil
}

// node writes what a unit computes, to which the pointer at a word leads, and returns its kind.
func (e *encoder) node(pointer int, c *units.Circuit, x units.Unit, number map[units.Unit]int32, scope []int32) (uint16, error) {
	if kind := c.Graph.Nodes[x.Node].Kind; kind != circuit.Input {
		children, weights := c.Children(x)
		ids := make([]int32, len(children))
		for i, child := range children {
			ids[i] = number[child]
		}
		if kind == circuit.Product {
			e.ints(e.record(pointer, 0, 1), ids)
			return product, nil
		}
		at := e.record(pointer, 0, 2)
		e.ints(at, ids)
		e.floats(at+1, weights)
		return sum, nil
	}
	family, params, v := c.Leaf(x)
	variable := uint64(uint32(scope[v]))
	switch l := family.(type) {
	case circuit.RealHistogram:
		if l.Floor != Floor {
			return 0, fmt.Errorf("a histogram with the density %v outside its bins, where the file has %v; write another format", l.Floor, float64(Floor))
		}
		breaks := make([]int32, len(l.Breaks))
		for i, b := range l.Breaks {
			if breaks[i] = int32(b); float64(breaks[i]) != b {
				return 0, fmt.Errorf("a histogram with a break at %v, where the file has whole numbers of 32 bits; write another format", b)
			}
		}
		const count, discrete = 5, 2 // its type and meta type
		at := e.record(pointer, 1, 3)
		e.put(at, count|discrete<<16|variable<<32)
		e.ints(at+1, breaks)
		e.floats(at+2, params)
		e.floats(at+3, l.Breaks[:len(params)])
		return histogram, nil
	case circuit.Gaussian:
		at := e.record(pointer, 3, 0)
		e.put(at, math.Float64bits(params[0]))
		e.put(at+1, math.Float64bits(params[1]))
		e.put(at+2, variable)
		return gaussian, nil
	case circuit.Categorical, circuit.Bernoulli:
		at := e.record(pointer, 1, 1)
		e.put(at, variable)
		e.floats(at+1, params)
		return categorical, nil
	}
	return 0, fmt.Errorf("a leaf of the family %s, which the file does not have; write another format", family.Name())
}
