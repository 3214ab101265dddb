package run

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/dataset"
)

// metaSchema is the key of the schema in a model file.
const metaSchema = "schema"

// metaClass is the key of the number of the variable of the class, from 1.
const metaClass = "class"

// metaLearned is the key of the settings with which a structure was learned.
const metaLearned = "learnspn"

// Rows opens a table. schema is what its rows must be; nil lets the files tell.
type Rows func(ctx context.Context, schema *dataset.Schema) (dataset.Source, error)

// Files returns the rows of files as dataset.OpenAll reads them: paths, globs,
// directories or builtin sources.
func Files(paths ...string) Rows {
	return func(ctx context.Context, schema *dataset.Schema) (dataset.Source, error) {
		return dataset.OpenAll(ctx, paths, dataset.Options{Schema: schema})
	}
}

// Table returns the rows of a source that is open already. What a batch of it lacks is an error that matches
// dataset.ErrFormat.
func Table(src dataset.Source) Rows {
	return func(_ context.Context, schema *dataset.Schema) (dataset.Source, error) {
		src, err := checked(src)
		if schema == nil || err != nil {
			return src, err
		}
		src = dataset.Rescaled(src, schema)
		return src, accepts(schema, src.Schema())
	}
}

// readOnceFor returns rows that are not read anew under a schema under which they were read last: a structure that is chosen by the rows
// of validation asks for them before training does, and a named pipe has them once.
func readOnceFor(rows Rows) Rows {
	var last *dataset.Schema
	var src dataset.Source
	return func(ctx context.Context, schema *dataset.Schema) (dataset.Source, error) {
		if src != nil && schema != nil && last.Equal(schema) && slices.Equal(last.Missing, schema.Missing) &&
			slices.EqualFunc(last.Columns, schema.Columns, func(a, b dataset.Column) bool { return a.Counts == b.Counts && a.Positive == b.Positive }) {
			return src, nil
		}
		read, err := rows(ctx, schema)
		if err == nil && schema != nil {
			last, src = schema, read
		}
		return read, err
	}
}

// checked returns a source that gives the rows it is asked for or an error.
func checked(src dataset.Source) (dataset.Source, error) {
	src, err := dataset.Checked(src)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return src, nil
}

// described is a source whose schema is one that its rows have been accepted by: that says more of them than a program's own, such
// as the edges of bins.
type described struct {
	dataset.Source
	schema *dataset.Schema
}

func (d described) Schema() *dataset.Schema { return d.schema }

// describe returns src under a schema that its rows have been accepted by. A column of codes stays one, as codes may stand where that has
// values.
func describe(src dataset.Source, schema *dataset.Schema) dataset.Source {
	out := *schema
	out.Columns = slices.Clone(schema.Columns)
	for i, c := range src.Schema().Columns {
		if to := &out.Columns[i]; c.Kind == dataset.Discrete && to.Kind == dataset.Continuous {
			to.Kind, to.Categories = c.Kind, c.Categories
		}
	}
	return described{src, &out}
}

// accepts is Schema.Accepts, but codes may stand where values are wanted.
func accepts(want, have *dataset.Schema) error {
	as := *have
	as.Columns = slices.Clone(have.Columns)
	for i := range min(len(as.Columns), len(want.Columns)) {
		if c := &as.Columns[i]; want.Columns[i].Kind == dataset.Continuous && c.Labels == nil {
			c.Kind, c.Categories = dataset.Continuous, 0
		}
	}
	return want.Accepts(&as)
}

// withDomains returns a schema whose columns hold what the leaves of a valid
// graph take.
func withDomains(s *dataset.Schema, g *circuit.Graph) *dataset.Schema {
	out := *s
	out.Columns = slices.Clone(s.Columns)
	for v := range out.Columns {
		out.Columns[v].Counts, out.Columns[v].Positive = true, true
	}
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Kind == circuit.Input {
			c, name := &out.Columns[n.Var], n.Leaf.Name()
			c.Counts = c.Counts && name == circuit.Poisson{}.Name()
			c.Positive = c.Positive && name == circuit.LogNormal{}.Name()
		}
	}
	read := circuit.RootDomains(g)
	for v, codes := range circuit.Domains(g) {
		c := &out.Columns[v]
		c.Unread = read[v] < 0
		switch {
		case codes > 0 && c.Kind == dataset.Continuous && len(c.Edges) == codes+1: // codes are bins
		case codes > 0:
			c.Kind, c.Categories, c.Offset, c.Scale, c.Edges, c.Outside = dataset.Discrete, codes, 0, 0, nil, 0
		case codes == 0:
			c.Kind, c.Categories, c.Labels, c.Edges, c.Outside = dataset.Continuous, 0, nil, nil, 0
		default:
			c.Counts, c.Positive = false, false // no leaf reads it
		}
	}
	return &out
}

// schemaOf returns the schema of a model file, or that of the leaves where the
// file has none. A variable that no leaf reads takes any number.
func schemaOf(m *format.Model) (*dataset.Schema, error) {
	if text, ok := m.Meta[metaSchema]; ok {
		s := new(dataset.Schema)
		if err := json.Unmarshal([]byte(text), s); err != nil {
			return nil, fmt.Errorf("%w: %w", format.ErrModel, err)
		}
		if len(s.Columns) == m.Graph.NumVars {
			if fit := withDomains(s, m.Graph); s.Equal(fit) {
				return fit, nil
			}
		}
		return nil, fmt.Errorf("%w: the schema does not fit the circuit's %d variables; get the file again", format.ErrModel, m.Graph.NumVars)
	}
	s, err := graphSchema(m.Graph)
	if err == nil && len(m.Names) == len(s.Columns) {
		for i, name := range m.Names {
			s.Columns[i].Name = name
		}
		if err := s.Validate(); err != nil {
			return nil, fmt.Errorf("%w: %w", format.ErrModel, err)
		}
	}
	return s, err
}

// graphSchema returns the schema of a valid graph's leaves.
func graphSchema(g *circuit.Graph) (*dataset.Schema, error) {
	if g.NumVars > dataset.MaxColumns {
		return nil, fmt.Errorf("%w: circuit over %d variables; at most %d can be read as columns", ErrOptions, g.NumVars, dataset.MaxColumns)
	}
	s := &dataset.Schema{Columns: make([]dataset.Column, g.NumVars)}
	for i := range s.Columns {
		s.Columns[i].Kind = dataset.Continuous
	}
	return withDomains(s, g), nil
}
