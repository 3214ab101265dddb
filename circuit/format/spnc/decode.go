package spnc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/circuit/format/units"
)

// MaxBytes is the size of the largest file that is read.
const MaxBytes = 256 << 20

// Floor is the density of histograms outside their bins, SPFlow's: the least step of float64 from 1.
const Floor = 0x1p-52

// Keys of the strings of a model that was read: what the file says beside the network.
const (
	MetaName    = "spnc.name"    // of the network
	MetaFeature = "spnc.feature" // type of a cell, such as float64 and uint8
	MetaQuery   = "spnc.query"   // of a query: rows per batch, kind of error, largest error, whether cells may be missing; else Bare
)

// Bare is the MetaQuery of a file of a network alone, which SPNC does not compile.
const Bare = "none"

// Format is the format of SPNC's files.
var Format = format.Format{Name: "spnc", Recognises: recognises, Decode: decode}

// recognises: the table of segments is plausible, and the first word points to a struct of a
// word and a pointer.
func recognises(head []byte) bool {
	if len(head) < 3*word {
		return false
	}
	count := uint64(binary.LittleEndian.Uint32(head)) + 1
	at := (4 + 4*count + word - 1) / word * word
	if count > maxSegments || at+word > uint64(len(head)) || binary.LittleEndian.Uint32(head[4:]) == 0 {
		return false
	}
	root := binary.LittleEndian.Uint64(head[at:])
	return root&3 == 2 || root>>32 == 1|1<<16 && root&3 == 0
}

func decode(r io.ReaderAt, size int64) (*format.Model, error) {
	if size > MaxBytes {
		return nil, fmt.Errorf("a file of %d bytes, at most %d are allowed", size, MaxBytes)
	}
	b := make([]byte, size)
	if n, err := r.ReadAt(b, 0); n < len(b) {
		return nil, err
	}
	m, err := newMessage(b)
	if err != nil {
		return nil, err
	}
	header, err := m.record(place{}, "the header")
	if err != nil {
		return nil, err
	}
	meta := map[string]string{}
	var net record
	switch tag := header.u16(0); tag {
	case 0:
		meta[MetaQuery] = Bare
		net, err = header.sub(0, "the network")
	case 1:
		net, err = query(header, meta)
	default:
		return nil, fmt.Errorf("a header of kind %d, where 0 is a network and 1 a query", tag)
	}
	if err != nil {
		return nil, err
	}
	return network(net, meta)
}

// query reads a query, and returns its network.
func query(header record, meta map[string]string) (record, error) {
	q, err := header.sub(0, "the query")
	if err != nil {
		return record{}, err
	}
	joint, err := q.sub(0, "the joint probability of the query")
	if err != nil {
		return record{}, err
	}
	meta[MetaQuery] = fmt.Sprintf("batch=%d error=%d most=%v missing=%t", q.i32(0), q.u16(4), q.f64(8), joint.bytes(0, 1)[0]&1 != 0)
	return joint.sub(0, "the network")
}

// Kinds of nodes.
const (
	product uint16 = iota
	sum
	histogram
	gaussian
	categorical
)

// network reads a network.
func network(net record, meta map[string]string) (*format.Model, error) {
	for pointer, field := range []struct{ key, what string }{{MetaName, "the name of the network"}, {MetaFeature, "the type of its features"}} {
		text, err := net.text(pointer, field.what)
		if err != nil {
			return nil, err
		}
		if text != "" {
			meta[field.key] = text
		}
	}
	scope, err := net.ints(2, "the scope")
	if err != nil {
		return nil, err
	}
	slices.Sort(scope)
	if len(slices.Compact(slices.Clone(scope))) < len(scope) || len(scope) == 0 {
		return nil, fmt.Errorf("a scope of %d variables, of which some are the same; want different ones", len(scope))
	}
	if n := net.i32(4); int(n) != len(scope) {
		return nil, fmt.Errorf("%d features and a scope of %d variables", n, len(scope))
	}
	records, err := net.records(3, "the nodes")
	if err != nil {
		return nil, err
	}
	nodes, places := make([]units.Node, len(records)), make(map[int32]int, len(records))
	for i, r := range records {
		id := r.i32(0)
		if _, twice := places[id]; twice {
			return nil, fmt.Errorf("two nodes have the number %d", id)
		}
		places[id] = i
	}
	for i, r := range records {
		if nodes[i], err = read(r, places, scope); err != nil {
			return nil, fmt.Errorf("node %d: %w", r.i32(0), err)
		}
	}
	root, ok := places[net.i32(0)]
	if !ok {
		return nil, fmt.Errorf("the root is node %d, which is not there", net.i32(0))
	}
	m, err := units.Assemble(nodes, root, len(scope))
	if fault := (*units.NodeError)(nil); errors.As(err, &fault) {
		return nil, fmt.Errorf("node %d: %w", records[fault.Node].i32(0), fault.Err)
	}
	if err != nil {
		return nil, err
	}
	m.Meta = meta
	for _, v := range scope {
		m.Names = append(m.Names, "V"+strconv.Itoa(int(v)))
	}
	return m, nil
}

// read reads a node. places are those of the nodes' numbers in the list.
func read(r record, places map[int32]int, scope []int32) (n units.Node, err error) {
	body, err := r.sub(0, "what it computes")
	if err != nil {
		return n, err
	}
	variable := int32(0)
	switch kind := r.u16(6); kind {
	case product, sum:
		ids, err := body.ints(0, "its children")
		if err != nil {
			return n, err
		}
		for _, id := range ids {
			at, ok := places[id]
			if !ok {
				return n, fmt.Errorf("its child %d is not there", id)
			}
			n.Children = append(n.Children, at)
		}
		n.Kind = circuit.Product
		if kind == sum {
			n.Kind = circuit.Sum
			n.Weights, err = body.floats(1, "its weights")
		}
		return n, err
	case histogram:
		variable = body.i32(4)
		n.Leaf, n.Params, err = bins(body)
	case gaussian:
		variable = body.i32(16)
		n.Leaf, n.Params = circuit.Gaussian{}, []float64{body.f64(0), body.f64(8)}
	case categorical:
		variable = body.i32(0)
		n.Params, err = body.floats(0, "its probabilities")
		n.Leaf = circuit.Categorical{Categories: len(n.Params)}
	default:
		err = fmt.Errorf("of kind %d; want 0 to 4: product, sum, histogram, Gaussian, categorical", kind)
	}
	if err != nil {
		return n, err
	}
	column, ok := slices.BinarySearch(scope, variable)
	if !ok {
		return n, fmt.Errorf("the variable %d is not in the scope", variable)
	}
	n.Kind, n.Var = circuit.Input, column
	return n, nil
}

// bins reads a histogram.
func bins(body record) (circuit.Leaf, []float64, error) {
	breaks, err := body.ints(0, "its breaks")
	if err != nil {
		return nil, nil, err
	}
	densities, err := body.floats(1, "its densities")
	if err != nil {
		return nil, nil, err
	}
	if len(breaks) != len(densities)+1 {
		return nil, nil, fmt.Errorf("%d breaks and %d densities; want one break more", len(breaks), len(densities))
	}
	leaf := circuit.RealHistogram{Floor: Floor}
	for _, b := range breaks {
		leaf.Breaks = append(leaf.Breaks, float64(b))
	}
	return leaf, densities, nil
}
