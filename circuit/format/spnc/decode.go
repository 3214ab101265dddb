package spnc

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
)

// MaxBytes is the size of the largest file that is read.
const MaxBytes = 256 << 20

// Floor is the density of histograms outside their bins, SPFlow's: the least step of float64 from 1.
const Floor = 0x1p-52

// Keys of the strings of a model that was read: what the file says beside the network.
const (
	MetaName    = "spnc.name"    // of the network
	MetaFeature = "spnc.feature" // type of a cell, such as float64 and uint8
	MetaQuery   = "spnc.query"   // of a query: rows per batch, kind of error, largest error, whether cells may be missing
)

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

// node is a node of a file.
type node struct {
	record
	kind     uint16
	children []int32 // as places in the list of nodes
	weights  []float64
	leaf     circuit.Leaf
	column   int
	params   []float64
	state    uint8 // of the search from the root
	id       circuit.NodeID
}

// Kinds of nodes.
const (
	product uint16 = iota
	sum
	histogram
	gaussian
	categorical
)

// The states of a node in the search from the root.
const (
	unseen uint8 = iota
	open         // some of its descendants are not done
	done
)

// network reads a network.
func network(net record, meta map[string]string) (*format.Model, error) {
	for key, pointer := range map[string]int{MetaName: 0, MetaFeature: 1} {
		text, err := net.text(pointer, "the name of the network or of its features")
		if err != nil {
			return nil, err
		}
		if text != "" {
			meta[key] = text
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
	nodes, places := make([]node, len(records)), make(map[int32]int32, len(records))
	for i, r := range records {
		nodes[i].record = r
		id := r.i32(0)
		if _, twice := places[id]; twice {
			return nil, fmt.Errorf("two nodes have the number %d", id)
		}
		places[id] = int32(i)
	}
	for i := range nodes {
		if err := nodes[i].read(places, scope); err != nil {
			return nil, fmt.Errorf("node %d: %w", nodes[i].i32(0), err)
		}
	}
	root, ok := places[net.i32(0)]
	if !ok {
		return nil, fmt.Errorf("the root is node %d, which is not there", net.i32(0))
	}
	order, err := sorted(nodes, root)
	if err != nil {
		return nil, err
	}
	return build(nodes, order, scope, meta)
}

// read reads what a node is.
func (n *node) read(places map[int32]int32, scope []int32) error {
	n.kind = n.u16(6)
	body, err := n.sub(0, "what it computes")
	if err != nil {
		return err
	}
	variable := int32(0)
	switch n.kind {
	case product, sum:
		ids, err := body.ints(0, "its children")
		if err != nil {
			return err
		}
		for _, id := range ids {
			at, ok := places[id]
			if !ok {
				return fmt.Errorf("its child %d is not there", id)
			}
			n.children = append(n.children, at)
		}
		if n.kind == sum {
			n.weights, err = body.floats(1, "its weights")
			if err == nil && len(n.weights) != len(n.children) {
				err = fmt.Errorf("%d weights for %d children", len(n.weights), len(n.children))
			}
		}
		return err
	case histogram:
		variable = body.i32(4)
		err = n.bins(body)
	case gaussian:
		variable = body.i32(16)
		n.leaf, n.params = circuit.Gaussian{}, []float64{body.f64(0), body.f64(8)}
	case categorical:
		variable = body.i32(0)
		n.params, err = body.floats(0, "its probabilities")
		n.leaf = circuit.Categorical{Categories: len(n.params)}
	default:
		return fmt.Errorf("of kind %d; want 0 to 4: product, sum, histogram, Gaussian, categorical", n.kind)
	}
	if err != nil {
		return err
	}
	column, ok := slices.BinarySearch(scope, variable)
	if !ok {
		return fmt.Errorf("the variable %d is not in the scope", variable)
	}
	n.column = column
	if err := n.leaf.CheckSettings(); err != nil {
		return err
	}
	return n.leaf.CheckParams(n.params)
}

func (n *node) bins(body record) error {
	breaks, err := body.ints(0, "its breaks")
	if err != nil {
		return err
	}
	if n.params, err = body.floats(1, "its densities"); err != nil {
		return err
	}
	if len(breaks) != len(n.params)+1 {
		return fmt.Errorf("%d breaks and %d densities; want one break more", len(breaks), len(n.params))
	}
	leaf := circuit.RealHistogram{Floor: Floor}
	for _, b := range breaks {
		leaf.Breaks = append(leaf.Breaks, float64(b))
	}
	n.leaf = leaf
	return nil
}

// sorted returns the nodes below the root, children first. Cycles, and nodes that the root does
// not reach, are errors.
func sorted(nodes []node, root int32) ([]int32, error) {
	type visit struct {
		at   int32
		next int
	}
	var order []int32
	nodes[root].state = open
	for stack := []visit{{at: root}}; len(stack) > 0; {
		top := &stack[len(stack)-1]
		n := &nodes[top.at]
		if top.next == len(n.children) {
			n.state, n.id = done, circuit.NodeID(len(order))
			order = append(order, top.at)
			stack = stack[:len(stack)-1]
			continue
		}
		c := n.children[top.next]
		top.next++
		switch nodes[c].state {
		case unseen:
			nodes[c].state = open
			stack = append(stack, visit{at: c})
		case open:
			return nil, fmt.Errorf("node %d is a descendant of itself; a network has no cycles", nodes[c].i32(0))
		}
	}
	for i := range nodes {
		if nodes[i].state == unseen {
			return nil, fmt.Errorf("node %d is not reached from the root", nodes[i].i32(0))
		}
	}
	return order, nil
}

// build makes the model.
func build(nodes []node, order, scope []int32, meta map[string]string) (*format.Model, error) {
	g := &circuit.Graph{NumVars: len(scope), Root: circuit.NodeID(len(order) - 1)}
	params := make([][]float64, len(order))
	for i, at := range order {
		n := &nodes[at]
		c := circuit.Node{Kind: circuit.Input, Units: 1, Leaf: n.leaf}
		switch n.kind {
		case product:
			c.Kind = circuit.Product
		case sum:
			c.Kind, params[i] = circuit.Sum, n.weights
		default:
			c.Var, params[i] = n.column, n.params
		}
		for _, child := range n.children {
			c.Children = append(c.Children, nodes[child].id)
		}
		g.Nodes = append(g.Nodes, c)
	}
	if err := circuit.Validate(g); err != nil {
		return nil, err
	}
	for i, at := range order {
		if nodes[at].kind == product {
			continue
		}
		if err := circuit.CheckParams(g, circuit.NodeID(i), params[i]); err != nil {
			return nil, fmt.Errorf("node %d: %w", nodes[at].i32(0), err)
		}
	}
	m := format.NewModel(g, meta, format.Params{Float64: func(id circuit.NodeID, dst []float64) error {
		copy(dst, params[id])
		return nil
	}})
	for _, v := range scope {
		m.Names = append(m.Names, "V"+strconv.Itoa(int(v)))
	}
	return m, nil
}
