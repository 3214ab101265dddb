package serve

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/serve/oip"
)

// gallery opens models for the tests of the page: one of images, one of a table whose
// names would be markup if a page let them, one with more columns than get a field, one of
// a single column, and one whose labels are hard to write in a row or look like numbers.
type gallery struct{}

func (gallery) Plan(context.Context, string) (int64, error) { return 54 << 20, nil }

func (gallery) Open(_ context.Context, path string) (Model, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	s := &dataset.Schema{}
	switch name := filepath.Base(path); {
	case strings.HasPrefix(name, "digits"):
		s.Image = [3]int{28, 28, 1}
		s.Columns = make([]dataset.Column, 28*28)
		for i := range s.Columns {
			s.Columns[i].Categories = 256
		}
	case name == "wide":
		s.Columns = make([]dataset.Column, 500)
		for i := range s.Columns {
			s.Columns[i].Categories = 2
		}
	case name == "one":
		s.Columns = []dataset.Column{{Name: "colour", Categories: 2, Labels: []string{"red", "blue"}}}
	case name == "hard":
		s.Columns = []dataset.Column{
			{Name: "a,b", Categories: 5, Labels: []string{"a", " a", "c,d", `say "e"`, "e"}},
			{Name: "hex", Categories: 2, Labels: []string{"10", "0x10"}},
			{Name: "same", Categories: 2, Labels: []string{"2", "2.0"}},
		}
	default:
		s.Columns = []dataset.Column{
			{Name: "level", Categories: 3, Labels: []string{"low", "mid", "</option><b>high"}},
			{Name: "size", Categories: 3, Labels: []string{"10", "20", "30"}},
			{Name: "<img src=x onerror=alert(1)>", Categories: 5},
			{Name: "score", Kind: dataset.Continuous, Scale: 1},
		}
	}
	return &painter{s}, nil
}

// painter answers with a ring for images and with simple numbers elsewhere.
type painter struct{ schema *dataset.Schema }

func (m *painter) Schema() *dataset.Schema { return m.schema }
func (m *painter) Device() string          { return "cpu" }
func (m *painter) Bytes() int64            { return 54 << 20 }
func (m *painter) Close() error            { return nil }

func (m *painter) CheckCell(int, float64) error { return nil }

func (m *painter) Queries() []Query {
	columns := int64(len(m.schema.Columns))
	named := func(p oip.Params) []int64 {
		n := int64(1 + strings.Count(p["of"].(string), ","))
		return []int64{n, n}
	}
	cells := Output{Name: "samples", Datatype: oip.FP64, Shape: []int64{columns}}
	mpe := cells
	mpe.Name = "mpe"
	return []Query{
		{Name: "log_prob", Outputs: []Output{{Name: "log_prob", Datatype: oip.FP32}}},
		{Name: "sample", RowsOptional: true, Repeat: "n_samples", Outputs: []Output{cells}, Params: []Param{{Name: "n_samples", Default: int64(1), Min: 1, Max: 100}, {Name: "seed"}}},
		{Name: "mpe", Outputs: []Output{mpe, {Name: "log_prob", Datatype: oip.FP64}}},
		{Name: "marginal", Outputs: []Output{{Name: "log_prob", Datatype: oip.FP32}, {Name: "marginals", Datatype: oip.FP64, Shape: []int64{columns, 5}, OnRequest: true}}},
		{Name: "conditional", Outputs: []Output{{Name: "log_prob", Datatype: oip.FP32}}, Inputs: []Input{{Name: "query_mask", Datatype: oip.Bool, Shape: []int64{columns}}}},
		{Name: "classify", Outputs: []Output{{Name: "label", Datatype: oip.FP64}, {Name: "probabilities", Datatype: oip.FP32, Shape: []int64{5}, OnRequest: true}}, Params: []Param{{Name: "class", Default: "", Values: []string{"size", "level"}}}},
		{Name: "covariance", Outputs: []Output{{Name: "covariance", Datatype: oip.FP64, Shape: []int64{-1, -1}, ShapeOf: named}}, Params: []Param{{Name: "of", Default: ""}}},
		{Name: "entropy", Whole: true, Outputs: []Output{{Name: "entropy", Datatype: oip.FP64}}, Params: []Param{{Name: "n_samples", Default: int64(10000)}}},
		{Name: "moments", Inputs: []Input{{Name: "weights", Datatype: oip.FP64, Shape: []int64{columns}, Optional: true}, {Name: "likelihood", Datatype: oip.FP64, Shape: []int64{columns, 5}, Optional: true}}, Outputs: []Output{{Name: "mean", Datatype: oip.FP64, Shape: []int64{columns}}, {Name: "variance", Datatype: oip.FP64, Shape: []int64{columns}}}},
	}
}

// paint is what a cell is when it is drawn.
func (m *painter) paint(v int, seed uint64) float64 {
	if m.schema.Image[0] == 0 {
		return float64((uint64(v) + seed) % 2)
	}
	x, y := float64(v%28)-13.5, float64(v/28)-13.5
	r := math.Hypot(x*(1+0.12*math.Sin(float64(seed))), y) - 7.5 - math.Sin(2*float64(seed))
	return math.Round(255 * math.Exp(-r*r/3))
}

func (m *painter) Run(_ context.Context, w *Work) error {
	at := 0
	for i, p := range w.Parts {
		for r := range p.Rows {
			row := cellsOf(w.Batch, at)
			width := len(row)
			switch w.Query {
			case "log_prob":
				w.Outputs[0][at] = logProb(row)
			case "sample", "mpe":
				seed := uint64(3)
				if w.Query == "sample" {
					seed = p.Params["seed"].(uint64) + uint64(p.First+r)
				} else {
					w.Outputs[1][at], w.Parts[i].Answer = logProb(row), oip.Params{"mpe_exact": false}
				}
				for v, x := range row {
					if x != x {
						x = m.paint(v, seed)
					}
					if numbers := m.schema.Columns[v].LabelNumbers(); numbers != nil {
						x = numbers[int(x)]
					}
					w.Outputs[0][at*width+v] = x
				}
			case "marginal":
				w.Outputs[0][at] = logProb(row)
				for v := range row {
					for k := range 5 {
						w.Outputs[1][(at*width+v)*5+k] = float64(k) / 10
					}
				}
			case "conditional": // how many columns are asked about
				for _, x := range w.Inputs[0][at*width : (at+1)*width] {
					w.Outputs[0][at] += x
				}
			case "classify":
				w.Outputs[0][at] = 2
				copy(w.Outputs[1][at*5:], []float64{0.125, 0.25, 0.625, 0, 0})
			case "covariance": // of one row, as the page asks
				for k := range w.Outputs[0] {
					w.Outputs[0][k] = float64(k)
				}
			case "entropy":
				w.Outputs[0][at] = float64(p.Params["n_samples"].(int64)) / 8
			case "moments":
				for v := range row {
					w.Outputs[0][at*width+v], w.Outputs[1][at*width+v] = m.paint(v, 3)/2, 1000*m.paint(v, 4)
				}
			}
			at++
		}
	}
	return nil
}
