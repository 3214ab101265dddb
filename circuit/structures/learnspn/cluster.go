package learnspn

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/pce-engine/pce/circuit"
)

// Settings of hard EM.
const (
	restarts   = 2
	maxRounds  = 30
	enoughGain = 1e-4 // relative
	codeCount  = 0.1  // added to the rows of each code of a cluster
)

// clusterEM parts the rows of a slice into at most k clusters by hard EM of a mixture of
// independent variables: categories of bins, and Gaussians of numbers. Of some restarts, from
// seeded rows, the likeliest partition counts. Missing cells say nothing. Clusters that no
// row chose are left out.
func clusterEM(s slice, k int, rng *rand.Rand) [][]int32 {
	m := newMixture(s, k)
	var best []int32
	bestScore := math.Inf(-1)
	for range restarts {
		if score := m.run(rng); score > bestScore || best == nil {
			best, bestScore = m.ofRows(), score
		}
	}
	return byCluster(s.rows, best, k)
}

// byCluster returns the rows of each cluster that has any, in the clusters' order.
func byCluster(rows, cluster []int32, k int) [][]int32 {
	parts := make([][]int32, k)
	for i, z := range cluster {
		parts[z] = append(parts[z], rows[i])
	}
	return slices.DeleteFunc(parts, func(p []int32) bool { return len(p) == 0 })
}

// mixture is the state of hard EM over the rows of a slice. Discrete columns are packed: what some
// of them say of a row is one cell, a place in a table of sums of log probabilities. Equal rows of
// few columns are one distinct row with a count; where there are numbers, each row is distinct.
//
//	table [bins+1, stride]     log probability of a bin in each cluster; the last one is of missing cells
//	plain [distinct, discrete] row of the table of each cell
//	sums  [places, stride]     log probability of a pack's cell
//	cell  [distinct, packs]    place of the row's cell
//	value [distinct, numbers]  NaN where missing
//	mean, deviation [numbers, k]
type mixture struct {
	k, rows   int
	stride    int // k, rounded up to four clusters, which are added up together
	discrete  []discreteColumn
	packs     []pack
	table     []float64
	sums      []float64
	counts    []float64 // rows of each cell in each cluster, as sums
	plain     []int32
	cell      []int32
	numbers   int
	value     []float64
	mean      []float64
	deviation []float64
	centre    []float64 // means over all rows, [numbers]
	floor     []float64 // of the deviations, [numbers]
	weight    []float64 // [stride] log
	times     []float64 // [distinct] how many rows are this one
	distinct  []int32   // [rows] the distinct row that equals it
	cluster   []int32   // [distinct]
}

// newMixture lays the cells of a slice out for EM of k components. A deviation never falls below
// a tenth of its column's.
func newMixture(s slice, k int) *mixture {
	m := &mixture{k: k, rows: len(s.rows), stride: (k + 3) &^ 3}
	m.weight = make([]float64, m.stride)
	var numbers []int
	for _, v := range s.vars {
		if s.all[v].domain > 0 {
			m.addDiscrete(s, v)
		} else {
			numbers = append(numbers, v)
		}
	}
	m.numbers = len(numbers)
	m.layPacks()
	m.merge()
	m.value = make([]float64, len(s.rows)*len(numbers))
	m.mean, m.deviation = make([]float64, len(numbers)*k), make([]float64, len(numbers)*k)
	for j, v := range numbers {
		sum, observed := 0.0, 0.0
		for i, r := range s.rows {
			x := s.all[v].compared(s.all[v].values[r])
			if m.value[i*len(numbers)+j] = x; x == x {
				sum, observed = sum+x, observed+1
			}
		}
		m.centre = append(m.centre, sum/max(observed, 1))
		m.floor = append(m.floor, 0.1*s.all[v].deviation+1e-9)
	}
	return m
}

// compared returns a number as clusters compare it: of a log-normal leaf its logarithm, of counts their root, whose deviation is the same
// for all rates. Beside the largest numbers all others would look alike.
func (x *variable) compared(number float64) float64 {
	switch x.leaf.(type) {
	case circuit.LogNormal:
		if !(number > 0) {
			return math.NaN()
		}
		return math.Log(number)
	case circuit.Poisson:
		return math.Sqrt(number)
	}
	return number
}

// spread returns the standard deviation of the numbers that clusters compare.
func (x *variable) spread() float64 {
	n, mean, squares := 0.0, 0.0, 0.0
	for _, number := range x.values {
		if y := x.compared(number); y == y { // Welford's update
			n++
			d := y - mean
			mean += d / n
			squares += d * (y - mean)
		}
	}
	return math.Sqrt(squares / max(n, 1))
}

// ofRows returns the cluster of each row.
func (m *mixture) ofRows() []int32 {
	z := make([]int32, m.rows)
	for i, d := range m.distinct {
		z[i] = m.cluster[d]
	}
	return z
}

// run does hard EM from k random rows and returns the log-likelihood of the rows in their clusters.
// In the first round many rows have the same number of cells in common with two of the clusters;
// adding column by column gives these ties to one or the other.
func (m *mixture) run(rng *rand.Rand) float64 {
	m.start(rng)
	before := m.assign(m.plain, m.table)
	for range maxRounds {
		m.fit()
		score := m.assign(m.cell, m.sums)
		if math.Abs(score-before) < enoughGain*math.Abs(before) {
			return score
		}
		before = score
	}
	return before
}

// start makes each cluster a smeared copy of a random row. Where the row has no number it is the mean of all rows: 0 may be far from all
// of them, as counts and whole numbers are not stored as distances, and no row that has a number would then come to the cluster.
func (m *mixture) start(rng *rand.Rand) {
	const own = 0.6 // probability of the row's bin, beside an even share of the rest
	clear(m.weight)
	for c, r := range rng.Perm(m.rows)[:min(m.k, m.rows)] {
		for j := range m.discrete {
			x := &m.discrete[j]
			for b := range x.count {
				p := (1 - own) / float64(x.count)
				if b == int(x.bins[r]) {
					p += own
				}
				m.table[(x.first+b)*m.stride+c] = math.Log(p)
			}
		}
		for j := range m.numbers {
			x := m.value[r*m.numbers+j]
			if x != x {
				x = m.centre[j]
			}
			m.mean[j*m.k+c], m.deviation[j*m.k+c] = x, 10*m.floor[j] // the floor is a tenth of the spread
		}
	}
	for c := m.rows; c < m.k; c++ { // more clusters than rows
		m.weight[c] = math.Inf(-1)
	}
}

// assign moves each row to its likeliest cluster, the first of equals, and returns the
// log-likelihood. Discrete columns come as cells [distinct, any] and a table [places, stride] of
// their log probabilities.
func (m *mixture) assign(cell []int32, table []float64) float64 {
	d, k := len(cell)/len(m.times), m.k
	ll := make([]float64, m.stride)
	total := 0.0
	for r, times := range m.times {
		cells := cell[r*d:][:d]
		for c := 0; c < m.stride; c += 4 {
			w := (*[4]float64)(m.weight[c:])
			a0, a1, a2, a3 := w[0], w[1], w[2], w[3]
			for _, at := range cells {
				p := (*[4]float64)(table[int(at)*m.stride+c:])
				a0, a1, a2, a3 = a0+p[0], a1+p[1], a2+p[2], a3+p[3]
			}
			*(*[4]float64)(ll[c:]) = [4]float64{a0, a1, a2, a3}
		}
		for j, x := range m.value[r*m.numbers:][:m.numbers] {
			if x == x {
				for c := range k {
					z := (x - m.mean[j*k+c]) / m.deviation[j*k+c]
					ll[c] -= z*z/2 + math.Log(m.deviation[j*k+c])
				}
			}
		}
		best := 0
		for c := range k {
			if ll[c] > ll[best] {
				best = c
			}
		}
		m.cluster[r] = int32(best)
		total += times * ll[best]
	}
	return total
}

// fit sets each cluster's distributions to those of its rows.
func (m *mixture) fit() {
	d, k := len(m.packs), m.k
	rows := make([]float64, k)
	clear(m.counts)
	sum, squares, seen := make([]float64, len(m.mean)), make([]float64, len(m.mean)), make([]float64, len(m.mean))
	for r, c := range m.cluster {
		times := m.times[r]
		rows[c] += times
		for _, at := range m.cell[r*d:][:d] {
			m.counts[int(at)*m.stride+int(c)] += times
		}
		for j, x := range m.value[r*m.numbers:][:m.numbers] {
			if x == x {
				i := j*k + int(c)
				sum[i], squares[i], seen[i] = sum[i]+x, squares[i]+x*x, seen[i]+1
			}
		}
	}
	m.takeApart()
	for c := range k {
		m.weight[c] = math.Log(max(rows[c], 1e-9) / float64(m.rows))
		for _, x := range m.discrete {
			total := 0.0
			for at := x.first; at < x.first+x.count; at++ {
				total += m.table[at*m.stride+c] + codeCount
			}
			for at := x.first; at < x.first+x.count; at++ {
				m.table[at*m.stride+c] = math.Log((m.table[at*m.stride+c] + codeCount) / total)
			}
		}
		for j := range m.numbers {
			if i := j*k + c; seen[i] > 0 {
				m.mean[i] = sum[i] / seen[i]
				m.deviation[i] = max(m.floor[j], math.Sqrt(max(0, squares[i]/seen[i]-m.mean[i]*m.mean[i])))
			}
		}
	}
	m.addUp()
}
