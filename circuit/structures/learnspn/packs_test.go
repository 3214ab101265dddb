package learnspn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/dataset"
)

// TestPacks compares what a mixture computes from packed cells and merged rows with plain counts
// and sums over the columns: of few rows and many, with missing cells, and domains up to one that
// no pack has room for.
func TestPacks(t *testing.T) {
	for _, tc := range []struct {
		rows, columns, k int
		merged           bool
	}{{1, 3, 2, false}, {7, 2, 9, true}, {500, 5, 2, true}, {500, 40, 3, false}, {3000, 9, 5, true}} {
		t.Run(fmt.Sprintf("rows=%d/columns=%d/k=%d", tc.rows, tc.columns, tc.k), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(tc.rows), uint64(tc.columns)))
			columns := make([]column, tc.columns)
			for v := range columns {
				domain := []int{2, 2, 3, 2, 300}[v%5]
				columns[v] = column{categories: domain, codes: make([]int, tc.rows)}
				for r := range tc.rows {
					columns[v].codes[r] = rng.IntN(domain) * rng.IntN(2)
					if v%3 == 1 && rng.IntN(4) == 0 {
						columns[v].codes[r] = dataset.Missing
					}
				}
			}
			src, leaves := tableOf(t, columns...)
			all, err := readTable(t.Context(), src, leaves)
			if err != nil {
				t.Fatal(err)
			}
			m := newMixture(whole(all), tc.k)
			if merged := len(m.times) < tc.rows; merged != tc.merged {
				t.Errorf("%d distinct rows of %d; merged %v, want %v", len(m.times), tc.rows, merged, tc.merged)
			}
			for i := range m.cluster {
				m.cluster[i] = int32(rng.IntN(tc.k))
			}
			z := m.ofRows()
			m.fit()
			total := 0.0 // of the likeliest clusters, column by column
			for r := range tc.rows {
				best := math.Inf(-1)
				for c := range tc.k {
					ll := m.weight[c]
					for _, at := range m.plain[int(m.distinct[r])*len(all):][:len(all)] {
						ll += m.table[int(at)*m.stride+c]
					}
					best = max(best, ll)
				}
				total += best
			}
			for r := 0; r < tc.rows; r += 1 + tc.rows/20 {
				for c := range tc.k {
					want, got := 0.0, 0.0
					for _, at := range m.cell[int(m.distinct[r])*len(m.packs):][:len(m.packs)] {
						got += m.sums[int(at)*m.stride+c]
					}
					for v := range all {
						b := all[v].bins[r]
						if b == missing {
							continue
						}
						same, total := codeCount, codeCount*float64(all[v].count)
						for i := range tc.rows {
							if z[i] == int32(c) && all[v].bins[i] != missing {
								if total++; all[v].bins[i] == b {
									same++
								}
							}
						}
						want += math.Log(same / total)
					}
					if !near(got, want, 1e-9*(1+math.Abs(want))) {
						t.Fatalf("row %d, cluster %d: the cells add up to %v, the columns to %v", r, c, got, want)
					}
				}
			}
			for _, got := range []float64{m.assign(m.plain, m.table), m.assign(m.cell, m.sums)} {
				if !near(got, total, 1e-9*math.Abs(total)) {
					t.Errorf("the rows have log-likelihood %v in their clusters, want %v", got, total)
				}
			}
		})
	}
}
