package reference

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
)

// RandomRows draws rows that fit a valid graph: codes are uniform, other values
// come from random leaves. Each cell is missing with the given probability.
// Values are float32, so that every program reads the same number.
func RandomRows(g *circuit.Graph, rng *rand.Rand, count int, missing float64) [][]float64 {
	leaves := make([]circuit.Leaf, g.NumVars)
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Kind == circuit.Input {
			leaves[n.Var] = n.Leaf
		}
	}
	rows := make([][]float64, count)
	for r := range rows {
		rows[r] = MissingRow(g.NumVars)
		for v, l := range leaves {
			if l == nil || rng.Float64() < missing {
				continue
			}
			if codes := l.Codes(); codes > 0 {
				rows[r][v] = float64(rng.IntN(codes))
				continue
			}
			p := make([]float64, l.NumParams())
			l.Init(p, circuit.ColumnStats{}, rng)
			rows[r][v] = float64(float32(l.Sample(p, rng)))
		}
	}
	return rows
}

// Schema describes the rows of a valid graph; a variable outside the scope is
// continuous.
func Schema(g *circuit.Graph) *dataset.Schema {
	s := &dataset.Schema{Columns: make([]dataset.Column, g.NumVars)}
	for v, codes := range circuit.Domains(g) {
		s.Columns[v] = dataset.Column{Name: fmt.Sprintf("x%d", v), Kind: dataset.Continuous}
		if codes > 0 {
			s.Columns[v].Kind, s.Columns[v].Categories = dataset.Discrete, codes
		}
	}
	return s
}

// Batch packs rows as a batch of the schema.
func Batch(s *dataset.Schema, rows [][]float64) *dataset.Batch {
	b := dataset.NewBatch(s, len(rows))
	for v := range s.Columns {
		cells := &b.Columns[v]
		for r, row := range rows {
			switch {
			case math.IsNaN(row[v]):
			case cells.Discrete():
				cells.Codes.Set(r, int(row[v]))
			default:
				cells.Values[r] = float32(row[v])
			}
		}
	}
	return b
}

// Rows unpacks a batch: the inverse of Batch.
func Rows(b *dataset.Batch) [][]float64 {
	rows := make([][]float64, b.Rows)
	for r := range rows {
		rows[r] = MissingRow(len(b.Columns))
		for v, cells := range b.Columns {
			if cells.IsMissing(r) {
				continue
			}
			if cells.Discrete() {
				rows[r][v] = float64(cells.Codes.At(r))
			} else {
				rows[r][v] = float64(cells.Values[r])
			}
		}
	}
	return rows
}
