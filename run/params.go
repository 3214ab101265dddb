package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/circuit/format/native"
	"github.com/pce-engine/pce/dataset"
)

// start returns the starting parameters: those of the file that the circuit
// comes from, random ones where it has none.
func (b *Blueprint) start(ctx context.Context, seed uint64) (circuit.ParamFunc, error) {
	given := b.params
	var cols []circuit.ColumnStats
	var shared map[circuit.NodeID]circuit.ColumnStats
	if b.Train != nil && needsStats(b.Graph) {
		sums, err := dataset.Summarize(ctx, b.Train)
		if err != nil {
			return nil, err
		}
		cols = make([]circuit.ColumnStats, len(sums))
		counted := make([]bool, len(sums)) // by Poisson, binomial or discretised logistic leaves
		for i := range b.Graph.Nodes {
			if n := &b.Graph.Nodes[i]; n.Kind == circuit.Input {
				_, trials := n.Leaf.(circuit.Binomial)
				_, logistic := n.Leaf.(circuit.DiscretisedLogistic)
				counted[n.Var] = counted[n.Var] || trials || logistic || b.Schema.Columns[n.Var].Counts
			}
		}
		near := b.farLimits(sums)
		for i, s := range sums {
			cols[i] = circuit.ColumnStats{Mean: s.Mean, Variance: s.Variance, Min: s.Min, Max: s.Max}
			if c := &b.Train.Schema().Columns[i]; c.Kind == dataset.Continuous && c.Scale != 0 || beyond(near[i], s.Min, s.Max) { // outliers would be a bad start
				cols[i].Mean, cols[i].Variance = s.Median, s.Spread*s.Spread
				if b.Schema.Columns[i].Positive && s.Median > 0 { // log-normal leaves take a mean, which lies above the median
					logs := math.Log1p(cols[i].Variance / (s.Median * s.Median))
					cols[i].Mean = s.Median * math.Exp(logs/2)
					cols[i].Variance = math.Expm1(logs) * cols[i].Mean * cols[i].Mean
				}
			} else if most := s.Median + 8*s.Spread; counted[i] && s.Spread > 0 && s.Max > most { // nor should starts reach to such counts
				cols[i].Mean, cols[i].Variance, cols[i].Max = cmp.Or(s.Median, min(s.Mean, s.Spread)), s.Spread*s.Spread, most // the mean may be above all others
			}
		}
		shared = sharedStats(b.Graph, cols, sums)
	}
	return func(id circuit.NodeID, dst []float32) error {
		if given != nil {
			if err := given(id, dst); !errors.Is(err, format.ErrNoParams) {
				return err
			}
		}
		of := cols
		if all, ok := shared[id]; ok {
			of = slices.Clone(cols)
			of[b.Graph.Nodes[id].Var] = all
		}
		return circuit.InitParams(b.Graph, id, seed, of, dst)
	}, nil
}

// sharedStats returns what the columns of inputs that share parameters look like together, by the node that owns these: units that all
// start near the numbers of one column, as those of the last step of a tied hidden Markov model, may be far from all others.
func sharedStats(g *circuit.Graph, cols []circuit.ColumnStats, sums []dataset.Summary) map[circuit.NodeID]circuit.ColumnStats {
	columns := map[circuit.NodeID][]int{} // of owners that others are tied to
	for i := range g.Nodes {
		if n, owner := &g.Nodes[i], g.Owner(circuit.NodeID(i)); n.Kind == circuit.Input && int(owner) != i {
			if columns[owner] == nil {
				columns[owner] = []int{g.Nodes[owner].Var}
			}
			columns[owner] = append(columns[owner], n.Var)
		}
	}
	all := make(map[circuit.NodeID]circuit.ColumnStats, len(columns))
	for owner, list := range columns {
		slices.Sort(list)
		list = slices.DeleteFunc(slices.Compact(list), func(v int) bool { return sums[v].Observed == 0 })
		c, rows := circuit.ColumnStats{}, 0.0
		for k, v := range list {
			rows += float64(sums[v].Observed)
			c.Mean += (cols[v].Mean - c.Mean) * float64(sums[v].Observed) / rows
			if k == 0 {
				c.Min, c.Max = cols[v].Min, cols[v].Max
			}
			c.Min, c.Max = min(c.Min, cols[v].Min), max(c.Max, cols[v].Max)
		}
		for _, v := range list {
			d := cols[v].Mean - c.Mean
			c.Variance += (cols[v].Variance + d*d) * float64(sums[v].Observed) / rows
		}
		all[owner] = c
	}
	return all
}

// needsStats reports whether some leaf starts from what the data looks like.
func needsStats(g *circuit.Graph) bool {
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Kind == circuit.Input && !circuit.ParamsAreTable(n.Leaf) {
			return true
		}
	}
	return false
}

// paramWriter is what takes parameters in the layout of a program.
type paramWriter interface {
	WriteParams(ctx context.Context, offset int64, params []float32) error
}

// write copies the starting parameters to dst, one owner at a time, so that the memory of the
// largest owner is enough. Parameters come in canonical order and are packed into the blocks
// of the program. For flows, tiny ones are raised as circuit.FloorParams says; queries take them as they are. It stops
// between two owners when ctx ends.
func (b *Blueprint) write(ctx context.Context, dst paramWriter, flows bool) error {
	var canonical, region []float32
	for i := range b.Map.Len() {
		if err := ctx.Err(); err != nil {
			return err
		}
		id := b.Map.Node(i)
		offset, n := b.Map.Region(i)
		canonical, region = sized(canonical, b.Graph.NumParams(id)), sized(region, n)
		if err := b.params(id, canonical); err != nil {
			return err
		}
		if flows {
			circuit.FloorParams(b.Graph, id, canonical)
		}
		if err := b.Map.Pack(i, canonical, region); err != nil {
			return err
		}
		if err := dst.WriteParams(ctx, offset, region); err != nil {
			return err
		}
	}
	return nil
}

// ParamReader is what holds parameters in the layout of a program.
type ParamReader interface {
	ReadParams(ctx context.Context, offset int64, params []float32) error
}

// read returns a ParamFunc over a program's parameters. Nodes that the root
// cannot reach have no place there: they keep what they started with.
func (b *Blueprint) read(ctx context.Context, src ParamReader) circuit.ParamFunc {
	owner := make(map[circuit.NodeID]int, b.Map.Len())
	for i := range b.Map.Len() {
		owner[b.Map.Node(i)] = i
	}
	var region []float32
	return func(id circuit.NodeID, dst []float32) error {
		i, ok := owner[id]
		if !ok {
			return b.params(id, dst)
		}
		offset, n := b.Map.Region(i)
		region = sized(region, n)
		if err := src.ReadParams(ctx, offset, region); err != nil {
			return fmt.Errorf("pce: read parameters of node %d: %w", id, err)
		}
		return b.Map.Unpack(i, region, dst)
	}
}

// narrow reports whether float32 holds every digit of all parameters that the root's value depends on.
func (b *Blueprint) narrow() (bool, error) {
	if b.wide == nil {
		return true, nil
	}
	g, wide := circuit.Reached(b.Graph, b.wide)
	load := circuit.Parameters(g, wide)
	for i := range g.Nodes {
		p, err := load(circuit.NodeID(i))
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(p, func(x float64) bool { return float64(float32(x)) != x }) {
			return false, nil
		}
	}
	return true, nil
}

// Save writes the circuit with parameters to a native model file. meta is kept in
// it, in addition to what the file that the circuit comes from says. What runs as code is not changed, and the file has all
// digits of the one that it comes from, as float32 where that holds them.
func (b *Blueprint) Save(ctx context.Context, path string, params ParamReader, meta map[string]string) error {
	all, err := b.strings(meta)
	if err != nil {
		return err
	}
	if b.Code != nil {
		narrow, err := b.narrow()
		switch {
		case err != nil:
			return err
		case narrow:
			return written(ctx, native.WriteContext, path, b.Graph, all, b.params)
		}
		return written(ctx, native.Write64Context, path, b.Graph, all, b.wide)
	}
	return written(ctx, native.WriteContext, path, b.Graph, all, b.read(ctx, params))
}

// written writes a circuit, without the nodes that the root does not reach where the file that it comes from leaves parameters of such
// nodes open.
func written[F float32 | float64, P ~func(circuit.NodeID, []F) error](ctx context.Context, write func(context.Context, string, *circuit.Graph, map[string]string, P) error,
	path string, g *circuit.Graph, meta map[string]string, params P) error {
	err := write(ctx, path, g, meta, params)
	if errors.Is(err, format.ErrNoParams) {
		if part, of := circuit.Reached[F](g, params); part != g {
			return write(ctx, path, part, meta, of)
		}
	}
	return err
}

// strings returns what a model file of the circuit keeps beside it: what the file that it comes from says, meta and
// the schema. All of it must be UTF-8, as the header of a model file is.
func (b *Blueprint) strings(meta map[string]string) (map[string]string, error) {
	text, err := json.Marshal(b.Schema)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(b.meta)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, meta)
	all[metaSchema] = string(text)
	for key, value := range all {
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return nil, fmt.Errorf("%w: the model's string %.40q is %.40q; write both in UTF-8", ErrOptions, key, value)
		}
	}
	return all, nil
}

// WriteCircuit writes a circuit that was made elsewhere, with the schema of its rows, to a native model file at path, which appears whole or
// not at all. Names and labels that are not UTF-8 are an error, as the file would have others.
func WriteCircuit(path string, g *circuit.Graph, s *dataset.Schema, params circuit.ParamFunc64) error {
	return WriteCircuitContext(context.Background(), path, g, s, params)
}

// WriteCircuitContext is WriteCircuit where path may be a pipe: waiting for what reads it ends with ctx.
func WriteCircuitContext(ctx context.Context, path string, g *circuit.Graph, s *dataset.Schema, params circuit.ParamFunc64) error {
	for i := range s.Columns {
		for _, text := range append([]string{s.Columns[i].Name}, s.Columns[i].Labels...) {
			if !utf8.ValidString(text) {
				return fmt.Errorf("%w: %.40q of column %d is not UTF-8; convert the file that it comes from, as with iconv -f latin1 -t utf-8", dataset.ErrSetting, text, i+1)
			}
		}
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return native.Write64Context(ctx, path, g, map[string]string{metaSchema: string(text)}, params)
}

// sized returns a slice of n floats in the memory of buf if it has room.
func sized(buf []float32, n int) []float32 {
	if cap(buf) < n {
		return make([]float32, n)
	}
	return buf[:n]
}
