package structures

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/pce-engine/pce/dataset"
)

// table is a source in memory: code[v] or value[v] holds column v.
type table struct {
	schema dataset.Schema
	code   [][]int
	value  [][]float32
}

func (t *table) Schema() *dataset.Schema { return &t.schema }

func (t *table) Rows() int { return max(len(t.code[0]), len(t.value[0])) }

func (t *table) Gather(ctx context.Context, b *dataset.Batch, rows []int) error {
	b.Resize(&t.schema, len(rows))
	for v := range t.schema.Columns {
		for i, r := range rows {
			if t.schema.Columns[v].Kind == dataset.Discrete {
				b.Columns[v].Codes.Set(i, t.code[v][r])
			} else {
				b.Columns[v].Values[i] = t.value[v][r]
			}
		}
	}
	return ctx.Err()
}

// addCodes appends a discrete column.
func (t *table) addCodes(categories int, labels []string, codes []int) {
	t.schema.Columns = append(t.schema.Columns, dataset.Column{Categories: categories, Labels: labels})
	t.code, t.value = append(t.code, codes), append(t.value, nil)
}

// addValues appends a continuous column.
func (t *table) addValues(values []float32) {
	t.schema.Columns = append(t.schema.Columns, dataset.Column{Kind: dataset.Continuous})
	t.code, t.value = append(t.code, nil), append(t.value, values)
}

// strokes returns 28×28 images of blurred line segments: about a fifth of the
// pixels is not 0, as in pictures of digits.
func strokes(rows int, seed uint64) *table {
	const side = 28
	rng := rand.New(rand.NewPCG(seed, 1))
	columns := make([][]int, side*side)
	for v := range columns {
		columns[v] = make([]int, rows)
	}
	for r := range rows {
		for range 3 {
			x, y := 7+14*rng.Float64(), 7+14*rng.Float64()
			dx, dy := rng.NormFloat64(), rng.NormFloat64()
			for s := -4.0; s <= 4; s += 0.5 {
				cx, cy := x+s*dx, y+s*dy
				for py := max(0, int(cy)-1); py <= min(side-1, int(cy)+2); py++ {
					for px := max(0, int(cx)-1); px <= min(side-1, int(cx)+2); px++ {
						ink := 255 * math.Exp(-0.6*((cx-float64(px))*(cx-float64(px))+(cy-float64(py))*(cy-float64(py))))
						columns[py*side+px][r] = max(columns[py*side+px][r], int(ink))
					}
				}
			}
		}
	}
	t := &table{}
	for _, c := range columns {
		t.addCodes(256, nil, c)
	}
	return t
}

// noise returns columns of independent uniform codes.
func noise(vars, rows, categories int, seed uint64) *table {
	rng := rand.New(rand.NewPCG(seed, 2))
	t := &table{}
	for range vars {
		c := make([]int, rows)
		for r := range c {
			c[r] = rng.IntN(categories)
		}
		t.addCodes(categories, nil, c)
	}
	return t
}
