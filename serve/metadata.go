package serve

import (
	"context"
	"slices"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/serve/oip"
)

// modelInfo is the metadata of a model: that of the protocol, whose outputs are those
// of the first query, and what each query takes and gives.
type modelInfo struct {
	oip.ModelInfo
	Queries []queryInfo  `json:"queries"`
	Columns []columnInfo `json:"columns"`
	Image   []int        `json:"image,omitempty"` // height, width and channels of rows that are images
}

// Marks of tensors in the metadata, as parameters that are true.
const (
	markOptional  = "optional"   // an input that requests may leave out
	markOnRequest = "on_request" // an output that requests get if they name it
)

// marked returns the parameters of a tensor that a mark suits if set is true.
func marked(mark string, set bool) oip.Params {
	if !set {
		return nil
	}
	return oip.Params{mark: true}
}

type queryInfo struct {
	Name       string           `json:"name"`
	Inputs     []oip.TensorInfo `json:"inputs"`
	Outputs    []oip.TensorInfo `json:"outputs"`
	Parameters []paramInfo      `json:"parameters,omitempty"`
}

type paramInfo struct {
	Name    string   `json:"name"`
	Default any      `json:"default"` // null: the server draws one and returns it
	Min     float64  `json:"min,omitempty"`
	Max     float64  `json:"max,omitempty"`
	Values  []string `json:"values,omitempty"`
}

// columnInfo is a run of like columns of x.
type columnInfo struct {
	Name       string   `json:"name,omitempty"`
	Kind       string   `json:"kind"`
	Categories int      `json:"categories,omitempty"`
	Labels     []string `json:"labels,omitempty"`
	Numeric    bool     `json:"numeric,omitempty"` // numbers of cells are the labels, not codes
	Repeat     int      `json:"repeat,omitempty"`  // columns of this kind; left out: one
}

// describe returns the metadata of a model, which is opened if it is not in memory; so it may
// take as long, and fail as, a request. Equal columns without names are listed once with their
// number: models of images have hundreds.
func (s *Server) describe(ctx context.Context, name, number string) (*modelInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	v, err := s.models.acquire(ctx, name, number)
	if err != nil {
		return nil, err
	}
	defer v.release()
	columns := int64(len(v.schema.Columns))
	x := oip.TensorInfo{Name: "x", Datatype: typeOf(v.schema), Shape: []int64{-1, columns}}
	if len(v.queries) > 0 && v.queries[0].Numbers != "" {
		x.Datatype = v.queries[0].Numbers
	}
	m := &modelInfo{ModelInfo: oip.ModelInfo{Name: v.name, Versions: []string{v.number}, Platform: "pce", Inputs: []oip.TensorInfo{x}}}
	for i := range v.queries {
		q := &v.queries[i]
		rows := x
		rows.Params = marked(markOptional, q.RowsOptional)
		if rows.Datatype = typeOf(v.schema); q.Numbers != "" {
			rows.Datatype = q.Numbers
		}
		observed := oip.TensorInfo{Name: "observed", Datatype: oip.Bool, Shape: x.Shape, Params: marked(markOptional, true)}
		info := queryInfo{Name: q.Name, Inputs: []oip.TensorInfo{}}
		if !q.Whole {
			info.Inputs = append(info.Inputs, rows, observed)
		}
		for _, in := range q.Inputs {
			t := oip.TensorInfo{Name: in.Name, Datatype: in.Datatype, Shape: append([]int64{-1}, in.Shape...), Params: marked(markOptional, in.Optional)}
			info.Inputs = append(info.Inputs, t)
		}
		for _, out := range q.Outputs {
			shape := []int64{-1}
			if q.Repeat != "" {
				shape = append(shape, -1)
			}
			t := oip.TensorInfo{Name: out.Name, Datatype: out.Datatype, Shape: append(shape, out.Shape...), Params: marked(markOnRequest, out.OnRequest)}
			info.Outputs = append(info.Outputs, t)
			if i == 0 && !out.OnRequest {
				m.Outputs = append(m.Outputs, t)
			}
		}
		for _, p := range q.Params {
			info.Parameters = append(info.Parameters, paramInfo{Name: p.Name, Default: p.Default, Min: p.Min, Max: p.Max, Values: p.Values})
		}
		m.Queries = append(m.Queries, info)
	}
	for i := range v.schema.Columns {
		c := &v.schema.Columns[i]
		info := columnInfo{Name: c.Name, Kind: c.Kind.String(), Categories: c.Categories, Labels: c.Labels, Numeric: c.LabelNumbers() != nil}
		if last := len(m.Columns) - 1; last >= 0 && c.Name == "" && c.Labels == nil {
			if l := &m.Columns[last]; l.Name == "" && l.Labels == nil && l.Kind == info.Kind && l.Categories == info.Categories {
				l.Repeat = max(l.Repeat, 1) + 1
				continue
			}
		}
		m.Columns = append(m.Columns, info)
	}
	if v.schema.Image != [3]int{} {
		m.Image = v.schema.Image[:]
	}
	return m, nil
}

// typeOf is the datatype that metadata names for x: one that holds all cells.
func typeOf(s *dataset.Schema) oip.Datatype {
	for i := range s.Columns {
		c := &s.Columns[i]
		if c.Kind == dataset.Continuous || slices.ContainsFunc(c.LabelNumbers(), func(x float64) bool { return float64(int32(x)) != x }) {
			return oip.FP64
		}
	}
	return oip.Int32
}
