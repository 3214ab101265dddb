package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format/native"
	"github.com/pce-engine/pce/circuit/resize"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
)

// maxPruneRows is the most rows that a circuit is pruned by: their flows are added up as one step.
const maxPruneRows = 1 << 32

// Resized says what became of a circuit that was pruned or grown.
type Resized struct {
	Before Size     `json:"before"`
	After  Size     `json:"after"`
	Rows   int64    `json:"rows,omitempty"` // that it was pruned by, without those of probability 0
	Flow   *float64 `json:"flow,omitempty"` // the share of their flow through sums that is kept; nil if grown

	Warnings []string `json:"warnings,omitempty"`
}

// Size is how large a circuit is: its units of inputs and sums, the weights of all sums, shared ones each time, and
// its different parameters.
type Size struct {
	Nodes      int64 `json:"nodes"`
	SumEdges   int64 `json:"sum_edges"`
	Parameters int64 `json:"parameters"`
}

func sizeOf(g *circuit.Graph) Size {
	s := circuit.Count(g)
	return Size{Nodes: s.Nodes(), SumEdges: s.SumEdges, Parameters: s.Params()}
}

// Prune writes the circuit in the file at path, without the weights that rows use least, to out, which appears whole
// or not at all. Rows of probability 0 use nothing. No other rows are ErrOptions. A circuit that was made with
// a class keeps the weights of all classes, also of those that no row has.
func Prune(ctx context.Context, path, out string, read RowReader, o Options, p resize.PruneOptions) (*Resized, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	b, err := OpenModelFor(How{Path: PathTensor}, path, o.Compile())
	if err != nil {
		return nil, err
	}
	defer b.Close()
	flows, rows, err := b.flows(ctx, read, o)
	if err != nil {
		return nil, err
	}
	if rows == 0 {
		return nil, fmt.Errorf("%w: no row of probability above 0 to prune %s by; give others", ErrOptions, path)
	}
	if _, ok := b.meta[metaClass]; ok {
		p.Root = true
	}
	c, err := resize.Prune(b.Graph, b.wide, flows, p)
	if err != nil {
		return nil, err
	}
	excludes, err := b.excludes()
	if err != nil {
		return nil, err
	}
	r, err := b.writeResized(ctx, out, c)
	if err != nil {
		return nil, err
	}
	r.noteUnchecked(b.Unchecked)
	r.Rows, r.Flow = rows, &c.Flow
	if c.Flow < 1 && excludes {
		r.Warnings = append(r.Warnings, "inputs of the circuit rule values out, so rows that used what is left out may have probability 0 now; count them with pce eval, or keep more")
	}
	return r, nil
}

// excludes reports whether inputs that the root reaches give some value no probability, as those of learned trees and of forests do. No
// such input of the class is ever left out.
func (b *Blueprint) excludes() (bool, error) {
	class, _ := strconv.Atoi(b.meta[metaClass])
	used, seen := circuit.Reachable(b.Graph), map[circuit.NodeID]bool{}
	for i := range b.Graph.Nodes {
		id, n := b.Graph.Owner(circuit.NodeID(i)), &b.Graph.Nodes[i]
		if n.Kind != circuit.Input || n.Var == class-1 || !used[i] || seen[id] {
			continue
		}
		if _, certain := n.Leaf.(circuit.Indicator); certain {
			return true, nil
		}
		seen[id] = true
		p := make([]float64, b.Graph.NumParams(id))
		if err := b.wide(id, p); err != nil {
			return false, err
		}
		none := false
		switch l := n.Leaf.(type) {
		case circuit.Bernoulli, circuit.Categorical, circuit.Histogram:
			none = slices.Contains(p, 0)
		case circuit.Binomial:
			none = slices.Contains(p, 0) || slices.Contains(p, 1)
		case circuit.RealHistogram:
			none = l.Floor == 0
		}
		if none {
			return true, nil
		}
	}
	return false, nil
}

// Grow writes the circuit in the file at path, with every unit twice, to out, which appears whole or
// not at all.
func Grow(path, out string, o resize.GrowOptions) (*Resized, error) {
	return GrowContext(context.Background(), path, out, o)
}

// GrowContext is Grow where out may be a pipe: waiting for what reads it ends with ctx.
func GrowContext(ctx context.Context, path, out string, o resize.GrowOptions) (*Resized, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	m, schema, err := OpenCircuit(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	g, params := circuit.Reached(m.Graph, inFile(path, m.Params64))
	b := &Blueprint{Graph: g, Schema: schema, meta: m.Meta, wide: params}
	c, err := resize.Grow(b.Graph, b.wide, o)
	if err != nil {
		return nil, err
	}
	r, err := b.writeResized(ctx, out, c)
	if err == nil {
		r.noteUnchecked(m.Unchecked)
	}
	return r, err
}

// noteUnchecked warns of a circuit whose file had no checksum: what is written has one, of parameters whose damage need not show.
func (r *Resized) noteUnchecked(unchecked bool) {
	if unchecked {
		r.Warnings = append(r.Warnings, "the model file is of an earlier version, without a checksum: damage to its parameters need not show")
	}
}

// inFile returns a function that gives parameters, whose errors name the file at path that they are in.
func inFile[F float32 | float64](path string, params func(circuit.NodeID, []F) error) func(circuit.NodeID, []F) error {
	return func(id circuit.NodeID, dst []F) error {
		if err := params(id, dst); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	}
}

// RowReader returns the next rows of a model's schema, io.EOF after the last ones. They may be
// replaced by the next call.
type RowReader func(ctx context.Context, s *dataset.Schema, most int) (*dataset.Batch, error)

// flows returns the flows of all sums that own weights, of rows of positive probability, and the number of
// these. The flows are those of a device, read a node at a time.
func (b *Blueprint) flows(ctx context.Context, read RowReader, o Options) (circuit.ParamFunc64, int64, error) {
	l := Load{Options: o.withDefaults(), Train: true, AnyRows: true, Shards: true, StepRows: maxPruneRows}
	if err := b.fit(&l); err != nil {
		return nil, 0, err
	}
	e, err := b.Engine(ctx, l)
	if err != nil {
		return nil, 0, err
	}
	defer e.Close()
	ll := make([]float64, e.Info().Rows)
	rows := int64(0)
	for {
		batch, err := read(ctx, b.Schema, len(ll))
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, 0, err
		}
		if err := e.Accumulate(ctx, batch, 0, batch.Rows, ll[:batch.Rows]); err != nil {
			return nil, 0, err
		}
		for _, x := range ll[:batch.Rows] {
			if !math.IsInf(x, -1) {
				rows++
			}
		}
	}
	flows, err := b.readFlows(ctx, e)
	return flows, rows, err
}

// readFlows copies the flows of sums from an engine, in canonical order.
func (b *Blueprint) readFlows(ctx context.Context, e *engine.Engine) (circuit.ParamFunc64, error) {
	all := make(map[circuit.NodeID][]float32)
	var raw []int64
	var region []float32
	for i := range b.Map.Len() {
		id := b.Map.Node(i)
		if b.Graph.Nodes[id].Kind != circuit.Sum {
			continue
		}
		offset, n := b.Map.Region(i)
		raw = raw[:0]
		raw = append(raw, make([]int64, n)...)
		if err := e.ReadFlows(ctx, offset, raw); err != nil {
			return nil, err
		}
		region = sized(region, n)
		for k, x := range raw {
			region[k] = float32(float64(x) * e.Grid())
		}
		all[id] = make([]float32, b.Graph.NumParams(id))
		if err := b.Map.Unpack(i, region, all[id]); err != nil {
			return nil, err
		}
	}
	return func(id circuit.NodeID, dst []float64) error {
		for i, x := range all[id] { // none of a node that the root does not reach
			dst[i] = float64(x)
		}
		return nil
	}, nil
}

// writeResized writes what became of a circuit, as float32 where float32 has all digits of the old one.
func (b *Blueprint) writeResized(ctx context.Context, out string, c *resize.Circuit) (*Resized, error) {
	narrow, err := b.narrow()
	if err != nil {
		return nil, err
	}
	var class map[string]string // which pruning and growing leave as it is
	if text, ok := b.meta[metaClass]; ok {
		class = map[string]string{metaClass: text}
	}
	all, err := (&Blueprint{Schema: b.Schema}).strings(class)
	if err != nil {
		return nil, err
	}
	if narrow {
		err = native.WriteContext(ctx, out, c.Graph, all, func(id circuit.NodeID, dst []float32) error {
			wide := make([]float64, len(dst))
			if err := c.Params(id, wide); err != nil {
				return err
			}
			for i, x := range wide {
				dst[i] = float32(x)
			}
			return nil
		})
	} else {
		err = native.Write64Context(ctx, out, c.Graph, all, c.Params)
	}
	if err != nil {
		return nil, err
	}
	return &Resized{Before: sizeOf(b.Graph), After: sizeOf(c.Graph)}, nil
}
