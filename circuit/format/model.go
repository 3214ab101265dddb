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
	// Unchecked says that the file should have a checksum and is of a version
	// without one: damage to its parameters need not show.
	Unchecked bool

	params circuit.ParamFunc // of nodes that own parameters
	close  func() error      // nil if nothing is open
}

// NewModel returns a model for the decoder of a format: a valid graph, strings
// (nil if there are none) and the reader of the nodes that own parameters, which
// must be safe for concurrent use. It gives an error that matches ErrNoParams for
// a node that the file leaves open. What it reads need not be valid: the model
// checks it.
func NewModel(g *circuit.Graph, meta map[string]string, params circuit.ParamFunc) *Model {
	return &Model{Graph: g, Meta: meta, params: params}
}

// Params fills dst with the parameters of a node in canonical order; a tied node
// gives those that it shares. It checks them, so it never hands out parameters
// that are not finite or not normalised. It matches circuit.ParamFunc and is
// safe for concurrent use. A node that the file leaves open gives an error that
// matches ErrNoParams.
func (m *Model) Params(id circuit.NodeID, dst []float32) error {
	if id < 0 || int(id) >= len(m.Graph.Nodes) {
		return fmt.Errorf("%w: no node %d; there are %d", ErrModel, id, len(m.Graph.Nodes))
	}
	if n := m.Graph.NumParams(id); len(dst) != n {
		return fmt.Errorf("%w: node %d has %d parameters and a slice of %d; pass NumParams of them", ErrModel, id, n, len(dst))
	}
	if len(dst) == 0 {
		return nil
	}
	if owner := m.Graph.Nodes[id].TiedTo; owner != circuit.None {
		id = owner
	}
	if err := m.params(id, dst); err != nil {
		return err
	}
	if err := circuit.CheckParams(m.Graph, id, dst); err != nil {
		return fmt.Errorf("%w: %w", ErrModel, err)
	}
	return nil
}

// Verify reads and checks the parameters of every node, in memory for the
// largest one. Nodes that are left open are fine.
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

var _ circuit.ParamFunc = (*Model)(nil).Params
