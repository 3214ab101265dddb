package codec

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"math"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
)

// Model is a circuit made ready to code rows. It is read-only, and safe for concurrent
// use.
type Model struct {
	graph  *circuit.Graph
	schema *dataset.Schema
	plan   *plan
	sums   []sumWeights // [nodes]
	tables []table      // [nodes]
	unread []int32      // variables that the root does not depend on
	digest [sha256.Size]byte
}

// New makes a valid circuit with parameters ready to code rows of schema. It reads the
// parameters once. A column that is continuous gives an error that matches ErrModel.
func New(g *circuit.Graph, params circuit.ParamFunc, schema *dataset.Schema) (*Model, error) {
	if len(schema.Columns) != g.NumVars {
		return nil, badModel("the circuit has %d variables and the schema %d columns", g.NumVars, len(schema.Columns))
	}
	domains := circuit.Domains(g)
	for v, c := range schema.Columns {
		if c.Kind != dataset.Discrete || domains[v] == 0 {
			return nil, badModel("%s is continuous, and only columns of codes can be coded without loss; train a model whose columns are discrete", schema.ColumnName(v))
		}
		if domains[v] > 0 && domains[v] != c.Categories {
			return nil, badModel("%s has %d categories and the circuit's leaves %d", schema.ColumnName(v), c.Categories, domains[v])
		}
	}
	p, err := newPlan(g)
	if err != nil {
		return nil, err
	}
	m := &Model{graph: g, schema: schema, plan: p, sums: make([]sumWeights, len(g.Nodes)), tables: make([]table, len(g.Nodes))}
	read := make([]bool, g.NumVars)
	for _, v := range p.vars {
		read[v] = true
	}
	for v, r := range read {
		if !r {
			m.unread = append(m.unread, int32(v))
		}
	}
	return m, m.load(params)
}

// Schema says what a row of the model is. It must not be changed.
func (m *Model) Schema() *dataset.Schema { return m.schema }

// load reads the parameters, and takes the digest of all that decides about the bytes
// of a file.
func (m *Model) load(params circuit.ParamFunc) error {
	h := sha256.New()
	schema, err := json.Marshal(m.schema)
	if err != nil {
		return badModel("%v", err)
	}
	putNumbers(h, len(schema))
	h.Write(schema)
	putNumbers(h, m.graph.NumVars, int(m.graph.Root), len(m.graph.Nodes))
	for i := range m.graph.Nodes {
		id := circuit.NodeID(i)
		n := &m.graph.Nodes[i]
		putNumbers(h, int(n.Kind), n.Units, n.Var, int(n.Tie.Node()), len(n.Children))
		for _, c := range n.Children {
			putNumbers(h, int(c))
		}
		if e := n.Edges; e != nil {
			putNumbers(h, e.Rows, e.Cols, len(e.Pairs))
			for _, pair := range e.Pairs {
				putNumbers(h, int(pair[0]), int(pair[1]))
			}
		}
		if n.Kind == circuit.Product {
			continue
		}
		if to := m.graph.Owner(id); to != id {
			m.sums[i], m.tables[i] = m.sums[to], m.tables[to]
			continue
		}
		w := make([]float32, m.graph.NumParams(id))
		if len(w) > 0 {
			if err := params(id, w); err != nil {
				return err
			}
			if err := circuit.CheckParams(m.graph, id, w); err != nil {
				return fmt.Errorf("%w: %w", ErrModel, err)
			}
		}
		if n.Kind == circuit.Sum {
			m.sums[i] = newSumWeights(m.graph, id, w)
		} else {
			spec, err := leafText(n.Leaf)
			if err != nil {
				return err
			}
			putNumbers(h, len(spec))
			h.Write(spec)
			if m.tables[i], err = newTable(n.Leaf, n.Units, w); err != nil {
				return err
			}
		}
		putParams(h, w)
	}
	h.Sum(m.digest[:0])
	return nil
}

func leafText(l circuit.Leaf) ([]byte, error) {
	spec, err := circuit.SpecOf(l)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	return json.Marshal(spec)
}

func putNumbers(h hash.Hash, numbers ...int) {
	var b [8]byte
	for _, n := range numbers {
		binary.LittleEndian.PutUint64(b[:], uint64(n))
		h.Write(b[:])
	}
}

func putParams(h hash.Hash, w []float32) {
	var b [4096]byte
	for len(w) > 0 {
		n := min(len(w), len(b)/4)
		for i, x := range w[:n] {
			binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(x))
		}
		h.Write(b[:4*n])
		w = w[n:]
	}
}
