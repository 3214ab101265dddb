package dataset

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// schemaJSON is the stored form of a schema: runs of like columns, and each
// list of labels once.
type schemaJSON struct {
	Columns []columnJSON `json:"columns"`
	Labels  [][]string   `json:"labels,omitempty"`
	Image   []int        `json:"image,omitempty"`
	Unit    Unit         `json:"unit,omitempty"`
	Missing []string     `json:"missing,omitempty"`
}

type columnJSON struct {
	Name       string    `json:"name,omitempty"`
	Kind       string    `json:"kind"`
	Categories int       `json:"categories,omitempty"`
	Labels     *int      `json:"labels,omitempty"` // index into schemaJSON.Labels
	Offset     float64   `json:"offset,omitempty"`
	Scale      float64   `json:"scale,omitempty"`
	Edges      []float64 `json:"edges,omitempty"`
	Outside    float64   `json:"outside,omitempty"`
	Repeat     int       `json:"repeat,omitempty"` // number of such columns; 0 is 1
}

// MarshalJSON writes s in the compact form that UnmarshalJSON reads and model files keep:
// equal neighbouring columns without names are written once with their number, and lists of
// labels once for neighbours that share them. A schema that Validate refuses is an error.
func (s Schema) MarshalJSON() ([]byte, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	var out schemaJSON
	for i := range s.Columns {
		c := &s.Columns[i]
		if i > 0 {
			p := &s.Columns[i-1]
			if c.Name == "" && c.same(p) {
				last := &out.Columns[len(out.Columns)-1]
				last.Repeat = max(last.Repeat, 1) + 1
				continue
			}
		}
		j := columnJSON{Name: c.Name, Kind: c.Kind.String(), Categories: c.Categories, Offset: c.Offset, Scale: c.Scale, Edges: c.Edges, Outside: c.Outside}
		if c.Labels != nil {
			if i == 0 || !sameLabels(c.Labels, s.Columns[i-1].Labels) {
				out.Labels = append(out.Labels, c.Labels)
			}
			n := len(out.Labels) - 1
			j.Labels = &n
		}
		out.Columns = append(out.Columns, j)
	}
	if s.Image != [3]int{} {
		out.Image = s.Image[:]
	}
	out.Unit, out.Missing = s.Unit, s.Missing
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON wrote and validates it. Unknown keys and more than
// MaxColumns columns are errors that match ErrFormat; s changes only where the text is right.
func (s *Schema) UnmarshalJSON(data []byte) error {
	var in schemaJSON
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return fmt.Errorf("%w: schema: %w", ErrFormat, err)
	}
	out := Schema{Unit: in.Unit, Missing: in.Missing}
	for _, j := range in.Columns {
		c := Column{Name: j.Name, Categories: j.Categories, Offset: j.Offset, Scale: j.Scale, Edges: j.Edges, Outside: j.Outside}
		switch j.Kind {
		case "discrete":
		case "continuous":
			c.Kind = Continuous
		default:
			return badData("schema", "unknown column kind %q", j.Kind)
		}
		if j.Labels != nil {
			if *j.Labels < 0 || *j.Labels >= len(in.Labels) || len(in.Labels[*j.Labels]) == 0 {
				return badData("schema", "there are no labels %d", *j.Labels)
			}
			c.Labels = in.Labels[*j.Labels]
		}
		n := max(j.Repeat, 1)
		if j.Repeat < 0 || n > MaxColumns-len(out.Columns) {
			return badData("schema", "more than %d columns", MaxColumns)
		}
		for range n {
			out.Columns = append(out.Columns, c)
		}
	}
	switch {
	case in.Image == nil:
	case len(in.Image) == 3:
		out.Image = [3]int(in.Image)
	default:
		return badData("schema", "image has %d dimensions; it takes 3", len(in.Image))
	}
	if err := out.Unit.check(); err != nil {
		return err
	}
	if err := out.Validate(); err != nil {
		return fmt.Errorf("%w: schema: %w", ErrFormat, err)
	}
	*s = out
	return nil
}
