package format

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pce-engine/pce/circuit"
)

// Model is a model file: a valid graph and access to its parameters.
type Model struct {
	Graph *circuit.Graph
	Meta  map[string]string // the caller's strings; nil if there are none
	Names []string          // of the variables, empty for one without; nil if the format has none
	// Unchecked says that the file should have a checksum and is of a version
	// without one: damage to its parameters need not show.
	Unchecked bool

	params Params
	close  func() error // nil if nothing is open
}

// Params are the parameters of a file, read node by node for those that own some.
// A format sets the one whose precision the file has; the other then follows:
// float32 is widened, which is exact, and float64 is rounded once. A format whose
// numbers are decimals sets both, and rounds each once. With neither, all nodes
// are left open.
type Params struct {
	Float32 circuit.ParamFunc
	Float64 circuit.ParamFunc64
}

// NewModel returns a model for the decoder of a format: a valid graph, strings
// (nil if there are none) and its parameters, which must be safe for concurrent
// use. They give errors that match ErrNoParams for a node that the file leaves
// open. What they read need not be valid: the model checks it.
func NewModel(g *circuit.Graph, meta map[string]string, params Params) *Model {
	if params.Float32 == nil && params.Float64 == nil {
		params.Float32 = func(id circuit.NodeID, _ []float32) error {
			return fmt.Errorf("%w: node %d; initialise it", ErrNoParams, id)
		}
	}
	return &Model{Graph: g, Meta: meta, params: params}
}

// Params fills dst with the parameters of a node in canonical order; a tied node
// gives those that it shares. It checks them, so it never hands out parameters
// that are not finite or not normalised. It matches circuit.ParamFunc and is
// safe for concurrent use. A node that the file leaves open gives an error that
// matches ErrNoParams. Engines read these: they compute in float32.
func (m *Model) Params(id circuit.NodeID, dst []float32) error {
	if m.params.Float32 != nil {
		return read(m.Graph, id, dst, m.params.Float32)
	}
	wide := make([]float64, len(dst))
	if err := m.Params64(id, wide); err != nil {
		return err
	}
	for i, v := range wide {
		dst[i] = float32(v)
	}
	if err := check(m.Graph, id, dst); err != nil {
		return fmt.Errorf("rounded to float32: %w", err)
	}
	return nil
}

// Params64 is Params in float64, with every digit that the file has. It matches
// circuit.ParamFunc64; circuit/reference and converters read these.
func (m *Model) Params64(id circuit.NodeID, dst []float64) error {
	if m.params.Float64 != nil {
		return read(m.Graph, id, dst, m.params.Float64)
	}
	narrow := make([]float32, len(dst))
	if err := m.Params(id, narrow); err != nil {
		return err
	}
	for i, v := range narrow {
		dst[i] = float64(v)
	}
	return nil
}

// read fills dst with the parameters of a node, or of the one that it is tied to,
// and checks them.
func read[F float32 | float64](g *circuit.Graph, id circuit.NodeID, dst []F, params func(circuit.NodeID, []F) error) error {
	if id < 0 || int(id) >= len(g.Nodes) {
		return fmt.Errorf("%w: no node %d; there are %d", ErrModel, id, len(g.Nodes))
	}
	if n := g.NumParams(id); len(dst) != n {
		return fmt.Errorf("%w: node %d has %d parameters and a slice of %d; pass NumParams of them", ErrModel, id, n, len(dst))
	}
	if len(dst) == 0 {
		return nil
	}
	id = g.Owner(id)
	if err := params(id, dst); err != nil {
		return err
	}
	return check(g, id, dst)
}

func check[F float32 | float64](g *circuit.Graph, id circuit.NodeID, p []F) error {
	if err := circuit.CheckParams(g, id, p); err != nil {
		return fmt.Errorf("%w: %w", ErrModel, err)
	}
	return nil
}

// Verify reads and checks the parameters of every node, in memory for the
// largest one, as engines read them. Nodes that are left open are fine.
func (m *Model) Verify() error {
	var buf []float32
	for i := range m.Graph.Nodes {
		id := circuit.NodeID(i)
		if !m.Graph.OwnsParams(id) {
			continue
		}
		buf = slices.Grow(buf[:0], m.Graph.NumParams(id))[:m.Graph.NumParams(id)]
		if err := m.Params(id, buf); err != nil && !errors.Is(err, ErrNoParams) {
			return err
		}
	}
	return nil
}

// NumParams returns the number of parameters in the file or left open by it,
// shared ones once.
func (m *Model) NumParams() int64 {
	n := int64(0)
	for i := range m.Graph.Nodes {
		if id := circuit.NodeID(i); m.Graph.OwnsParams(id) {
			n += int64(m.Graph.NumParams(id))
		}
	}
	return n
}

// Close closes the file; the graph stays valid.
func (m *Model) Close() error {
	if m.close == nil {
		return nil
	}
	return m.close()
}

var (
	_ circuit.ParamFunc   = (*Model)(nil).Params
	_ circuit.ParamFunc64 = (*Model)(nil).Params64
)
