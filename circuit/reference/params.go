package reference

import (
	"fmt"

	"github.com/pce-engine/pce/circuit"
)

// Params holds the parameters of every node in canonical order; it is nil for
// products, for tied nodes and for inputs without parameters.
type Params [][]float64

// Init returns the random start that circuit.InitParams draws.
func Init(g *circuit.Graph, seed uint64, cols []circuit.ColumnStats) (Params, error) {
	return Load(g, func(id circuit.NodeID, dst []float32) error {
		return circuit.InitParams(g, id, seed, cols, dst)
	})
}

// Load collects the float32 parameters of a valid graph: those that an engine
// computes with.
func Load(g *circuit.Graph, read circuit.ParamFunc) (Params, error) {
	return Load64(g, func(id circuit.NodeID, dst []float64) error {
		narrow := make([]float32, len(dst))
		if err := read(id, narrow); err != nil {
			return err
		}
		for k, v := range narrow {
			dst[k] = float64(v)
		}
		return nil
	})
}

// Load64 collects the float64 parameters of a valid graph, which have all digits
// of a model that was imported.
func Load64(g *circuit.Graph, read circuit.ParamFunc64) (Params, error) {
	p := make(Params, len(g.Nodes))
	for i := range g.Nodes {
		id := circuit.NodeID(i)
		if !g.OwnsParams(id) {
			continue
		}
		p[i] = make([]float64, g.NumParams(id))
		if err := read(id, p[i]); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// FromFloat32 widens one slice for each node.
func FromFloat32(g *circuit.Graph, narrow [][]float32) (Params, error) {
	if len(narrow) != len(g.Nodes) {
		return nil, fmt.Errorf("%w: parameters of %d nodes for %d nodes; pass one slice for each", circuit.ErrGraph, len(narrow), len(g.Nodes))
	}
	return Load(g, func(id circuit.NodeID, dst []float32) error {
		if len(narrow[id]) != len(dst) {
			return fmt.Errorf("%w: node %d has %d parameters; want %d", circuit.ErrGraph, id, len(narrow[id]), len(dst))
		}
		copy(dst, narrow[id])
		return nil
	})
}

// Float32 rounds all parameters.
func (p Params) Float32() [][]float32 {
	narrow := make([][]float32, len(p))
	for i, q := range p {
		if q != nil {
			narrow[i] = make([]float32, len(q))
			_ = p.Read(circuit.NodeID(i), narrow[i])
		}
	}
	return narrow
}

// Read rounds the parameters of one node to dst: p.Read is a circuit.ParamFunc.
func (p Params) Read(id circuit.NodeID, dst []float32) error {
	if int(id) >= len(p) || len(p[id]) != len(dst) {
		return fmt.Errorf("%w: no %d parameters of node %d", circuit.ErrGraph, len(dst), id)
	}
	for i, v := range p[id] {
		dst[i] = float32(v)
	}
	return nil
}

// Read64 copies the parameters of one node to dst: p.Read64 is a
// circuit.ParamFunc64.
func (p Params) Read64(id circuit.NodeID, dst []float64) error {
	if int(id) >= len(p) || len(p[id]) != len(dst) {
		return fmt.Errorf("%w: no %d parameters of node %d", circuit.ErrGraph, len(dst), id)
	}
	copy(dst, p[id])
	return nil
}

// Clone returns a deep copy.
func (p Params) Clone() Params {
	q := make(Params, len(p))
	for i := range p {
		if p[i] != nil {
			q[i] = append([]float64{}, p[i]...)
		}
	}
	return q
}
