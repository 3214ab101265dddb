package learnspn

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/dataset"
)

// truth is a mixture of three classes of two normal numbers, two counts and two categories,
// all independent in a class.
var truth = struct {
	weight   [3]float64
	mean     [2][3]float64
	rate     [2][3]float64
	category [2][3][4]float64
}{
	weight:   [3]float64{0.5, 0.3, 0.2},
	mean:     [2][3]float64{{-2, 0, 3}, {1, -1, 1}},
	rate:     [2][3]float64{{2, 8, 20}, {5, 1, 5}},
	category: [2][3][4]float64{{{0.7, 0.1, 0.1, 0.1}, {0.1, 0.7, 0.1, 0.1}, {0.1, 0.1, 0.1, 0.7}}, {{0.4, 0.4, 0.1, 0.1}, {0.1, 0.1, 0.4, 0.4}, {0.25, 0.25, 0.25, 0.25}}},
}

// mixedRows draws rows of the truth, of whose cells a tenth is missing: columns for tableOf,
// and rows for the reference.
func mixedRows(n int, rng *rand.Rand) ([]column, [][]float64) {
	columns := make([]column, 6)
	rows := make([][]float64, n)
	for v := range columns {
		if columns[v] = (column{values: make([]float32, n)}); v >= 4 {
			columns[v] = column{categories: 4, codes: make([]int, n)}
		}
	}
	columns[2].leaf, columns[3].leaf = circuit.Poisson{}, circuit.Poisson{}
	pick := func(p []float64) int {
		u := rng.Float64()
		for i, q := range p {
			if u -= q; u < 0 {
				return i
			}
		}
		return len(p) - 1
	}
	for r := range rows {
		class := pick(truth.weight[:])
		rows[r] = reference.MissingRow(6)
		for v := range columns {
			var x float64
			switch {
			case v < 2:
				x = float64(float32(truth.mean[v][class] + rng.NormFloat64()))
			case v < 4:
				x = circuit.Poisson{}.Sample([]float64{truth.rate[v-2][class]}, rng)
			default:
				x = float64(pick(truth.category[v-4][class][:]))
			}
			if rng.IntN(10) == 0 {
				x = math.NaN()
			}
			switch {
			case v < 4:
				columns[v].values[r] = float32(x)
			case x == x:
				columns[v].codes[r] = int(x)
			default:
				columns[v].codes[r] = dataset.Missing
			}
			if x == x {
				rows[r][v] = x
			}
		}
	}
	return columns, rows
}

// trueLogLik returns the log density of a row.
func trueLogLik(row []float64) float64 {
	var part [3]float64
	for c, w := range truth.weight {
		part[c] = math.Log(w)
		for v, x := range row {
			switch {
			case x != x:
			case v < 2:
				part[c] += circuit.Gaussian{}.LogProb([]float64{truth.mean[v][c], 1}, x)
			case v < 4:
				part[c] += circuit.Poisson{}.LogProb([]float64{truth.rate[v-2][c]}, x)
			default:
				part[c] += math.Log(truth.category[v-4][c][int(x)])
			}
		}
	}
	return logSumExp(part[:], make([]float64, 3))
}

// TestMixedTable learns from 5,000 rows of a known density with both tests and both
// clusterings, and wants the log-likelihood of other rows within 0.05 nats per column of the
// truth, and above that of independent columns.
func TestMixedTable(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	columns, _ := mixedRows(5000, rng)
	src, leaves := tableOf(t, columns...)
	_, held := mixedRows(3000, rng)
	want := 0.0
	for _, row := range held {
		want += trueLogLik(row) / float64(len(held))
	}
	score := func(set func(*Options)) float64 {
		ev := evaluator(t, learnFrom(t, src, leaves, set))
		sum := 0.0
		for _, row := range held {
			ll, err := ev.LogLikelihood(row)
			if err != nil {
				t.Fatal(err)
			}
			sum += ll
		}
		return sum / float64(len(held))
	}
	apart := score(func(o *Options) { o.MinRows, o.Leaf = 5000, Factors; o.Columns, o.Threshold = GTest, 1e9 })
	for _, o := range []Options{{Columns: RDC, Rows: EM}, {Columns: RDC, Rows: KMeans}} {
		got := score(func(p *Options) { p.Columns, p.Rows, p.MinRows = o.Columns, o.Rows, 400 })
		t.Logf("%s, %s: %.4f nats per row, truth %.4f, independent columns %.4f", o.Columns, o.Rows, got, want, apart)
		if !(want-got <= 0.05) || !(got > apart) { // 0.115 of k-means whose means stay where they began
			t.Errorf("%s, %s: %v nats per row, the truth has %v and independent columns %v", o.Columns, o.Rows, got, want, apart)
		}
	}
}
