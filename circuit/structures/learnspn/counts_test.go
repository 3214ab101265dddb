package learnspn

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
)

// tableRows reads the rows of columns.
func tableRows(t *testing.T, columns ...column) []variable {
	t.Helper()
	src, leaves := tableOf(t, columns...)
	all, err := readTable(t.Context(), src, leaves)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestJoint counts the pairs of bins of columns with and without missing cells, of two bins, of some and of more than sets are
// kept of, for all rows and for some, into a place that has counts of others.
func TestJoint(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 4))
	const rows = 150
	var columns []column
	for _, domain := range []int{2, 2, 3, 16, 2, 16} {
		c := column{categories: domain, codes: make([]int, rows)}
		for r := range c.codes {
			if c.codes[r] = rng.IntN(domain) * min(1, rng.IntN(3)); len(columns) >= 4 && rng.IntN(3) == 0 {
				c.codes[r] = dataset.Missing
			}
		}
		columns = append(columns, c)
	}
	all := tableRows(t, columns...)
	s := whole(all)
	dst := slices.Repeat([]float64{77}, maxBins*maxBins)
	for _, s := range []slice{s, s.of(s.rows[:70]), s.of([]int32{3, 99})} {
		p := newPairCounter(s)
		for i := range s.vars {
			for j := range i {
				want := make([]float64, columns[i].categories*columns[j].categories)
				for _, r := range s.rows {
					if c, d := columns[i].codes[r], columns[j].codes[r]; c != dataset.Missing && d != dataset.Missing {
						want[c*columns[j].categories+d]++
					}
				}
				if got := p.joint(i, j, dst); !slices.Equal(got, want) {
					t.Errorf("%d rows, columns %d and %d: %v, want %v", len(s.rows), i, j, got, want)
				}
			}
		}
	}
}

// TestClustersOfNumbers fits clusters to numbers, of which some are missing.
func TestClustersOfNumbers(t *testing.T) {
	nan := float32(math.NaN())
	all := tableRows(t, column{values: []float32{1, 9, 5, nan, 13, 7, 3, 20}})
	if c := all[0].describe(); c.Min != 1 || c.Max != 20 || !near(c.Mean, 58./7, 1e-12) || !near(c.Variance, 734./7-58.*58/49, 1e-12) {
		t.Errorf("the column is %+v", c)
	}
	if got := all[0].deviation; !near(got*got, 734./7-58.*58/49, 1e-12) {
		t.Errorf("the column's deviation is %v", got)
	}
	m := newMixture(whole(all).of([]int32{0, 1}), 2) // whose least deviation is of all rows
	if len(m.floor) != 1 || !near(m.floor[0], all[0].deviation/10+1e-9, 1e-12) {
		t.Errorf("the least deviation of two rows is %v", m.floor)
	}
	m = newMixture(whole(all), 2)
	copy(m.cluster, []int32{0, 1, 0, 0, 1, 1, 0, 1})
	m.fit()
	for c, want := range []struct{ mean, variance float64 }{{3, 8. / 3}, {12.25, 174.75 - 12.25*12.25}} {
		if mean, deviation := m.mean[c], m.deviation[c]; !near(mean, want.mean, 1e-12) || !near(deviation, math.Sqrt(want.variance), 1e-12) {
			t.Errorf("cluster %d has the mean %v and the deviation %v, want %v and %v", c, mean, deviation, want.mean, math.Sqrt(want.variance))
		}
	}
}

// TestClustersOfMagnitudes wants rows of log-normal columns, and of counts, to be told apart also where rows elsewhere have numbers that
// are thousands of times as large, beside which they are all alike.
func TestClustersOfMagnitudes(t *testing.T) {
	for _, leaf := range []circuit.Leaf{circuit.LogNormal{}, circuit.Poisson{}} {
		rng := rand.New(rand.NewPCG(4, 8))
		const rows = 300
		columns := make([]column, 3)
		for v := range columns {
			columns[v] = column{values: make([]float32, rows), leaf: leaf}
		}
		var part []int32 // the rows of the first two kinds
		for r := range rows {
			for v := range columns {
				x := math.Exp([]float64{1, 4.6, 9}[r%3] + 0.2*rng.NormFloat64())
				columns[v].values[r] = float32(math.Round(x))
			}
			if r%3 < 2 {
				part = append(part, int32(r))
			}
		}
		s := whole(tableRows(t, columns...)).of(part)
		apart := 0 // seeds; of some both clusters start from like rows and stay together
		for seed := range uint64(10) {
			clusters := clusterEM(s, 2, rand.New(rand.NewPCG(seed, 1)))
			if len(clusters) == 2 && len(clusters[0]) == rows/3 && !slices.ContainsFunc(clusters[0], func(r int32) bool { return r%3 != clusters[0][0]%3 }) {
				apart++
			}
		}
		if apart < 8 {
			t.Errorf("%s: the kinds are apart for %d of 10 seeds", leaf.Name(), apart)
		}
	}
}

// TestClustersFarFromZero wants the clusters of numbers that are far from 0 also where half of the cells are missing, and with them
// some of those of the rows that clusters start from.
func TestClustersFarFromZero(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 8))
	const rows = 400
	kind, columns := make([]int, rows), make([]column, 8)
	for v := range columns {
		columns[v].values = make([]float32, rows)
	}
	for r := range rows {
		kind[r] = rng.IntN(2)
		for v := range columns {
			if columns[v].values[r] = float32(2000 + 60*kind[r] + rng.IntN(20)); rng.IntN(2) == 0 {
				columns[v].values[r] = float32(math.NaN())
			}
		}
	}
	s := whole(tableRows(t, columns...))
	for seed := range uint64(20) {
		right := 0
		clusters := clusterEM(s, 2, rand.New(rand.NewPCG(seed, 1)))
		for _, cluster := range clusters {
			of := [2]int{}
			for _, r := range cluster {
				of[kind[r]]++
			}
			right += max(of[0], of[1])
		}
		if len(clusters) != 2 || right < rows*95/100 {
			t.Errorf("seed %d: %d of %d rows are in %d clusters of their kind", seed, right, rows, len(clusters))
		}
	}
}

// TestKMeans finds clumps that lie far apart from any first point.
func TestKMeans(t *testing.T) {
	const clumps, each = 4, 25
	rng := rand.New(rand.NewPCG(1, 8))
	var points []float64
	for i := range clumps * each {
		points = append(points, 1e4*float64(i%clumps)+rng.Float64(), rng.Float64())
	}
	for seed := range uint64(100) {
		cluster, spread := kMeans(points, 2, clumps, rand.New(rand.NewPCG(seed, 0)))
		for i, c := range cluster {
			if c != cluster[i%clumps] {
				t.Fatalf("seed %d: point %d is not in the cluster of point %d", seed, i, i%clumps)
			}
		}
		if !(spread <= 2*clumps*each) {
			t.Fatalf("seed %d: squared distances of %v", seed, spread)
		}
	}
}

// TestKMeansMoves wants the means of clusters, not the points that they began with.
func TestKMeansMoves(t *testing.T) {
	points := []float64{0, 1, 2, 1e4, 1e4 + 1, 1e4 + 5}
	for seed := range uint64(20) {
		// 1 + 0 + 1 from the mean 1, and 4 + 1 + 9 from 1e4 + 2.
		if _, spread := kMeans(points, 1, 2, rand.New(rand.NewPCG(seed, 0))); spread != 16 {
			t.Errorf("seed %d: squared distances of %v, want 16", seed, spread)
		}
	}
}

// TestTightestClusters wants the tightest partition of some restarts, which is not always the last one.
func TestTightestClusters(t *testing.T) {
	columns, _ := mixedRows(60, rand.New(rand.NewPCG(7, 8)))
	s := whole(tableRows(t, columns...))
	earlier := 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 0))
		points, d := rdcPoints(s, rng)
		best, tightest := kMeans(points, d, 3, rng)
		for range restarts - 1 {
			if z, spread := kMeans(points, d, 3, rng); spread < tightest {
				best, tightest = z, spread
			} else if !slices.Equal(z, best) {
				earlier++
			}
		}
		want := byCluster(s.rows, best, 3)
		if got := clusterKMeans(s, 3, rand.New(rand.NewPCG(seed, 0))); !slices.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("seed %d: clusters %v, want %v", seed, got, want)
		}
	}
	if earlier == 0 {
		t.Error("the last restart was always the tightest: the test says little")
	}
}

// TestBinLabels gives the most frequent of many labels bins of their own, whatever cells are missing.
func TestBinLabels(t *testing.T) {
	x := variable{domain: 40}
	for code := range 40 {
		for range 1 + (code+20)%40 { // 19 is the most frequent, then 18, ... 0, 39, ...
			x.codes = append(x.codes, int32(code), missing)
		}
	}
	x.bin()
	for r, c := range x.codes {
		want := int32(missing)
		if c != missing {
			want = int32(min((59-int(c))%40, maxBins-1))
		}
		if x.bins[r] != want {
			t.Fatalf("code %d is in bin %d, want %d", c, x.bins[r], want)
		}
	}
	if x.count != maxBins {
		t.Errorf("%d bins, want %d", x.count, maxBins)
	}
}

// TestMovesStayInRange moves settings from both ends of their ranges.
func TestMovesStayInRange(t *testing.T) {
	for _, o := range []Options{{MinRows: 2, Threshold: 2e-3, Clusters: 2, Smoothing: 2e-3}, {MinRows: 64, Threshold: 999, Clusters: 8, Smoothing: 999}} {
		for i, move := range moves {
			for _, up := range []bool{false, true} {
				if p, ok := move(o, up); ok && (p.MinRows < 2 || p.Clusters < 2 || p.Clusters > 8 || !(p.Threshold > 1e-3 && p.Threshold < 1e3) || !(p.Smoothing > 1e-3 && p.Smoothing < 1e3)) {
					t.Errorf("move %d from %+v leads to %+v", i, o, p)
				}
			}
		}
	}
}
