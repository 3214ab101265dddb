package learnspn

import (
	"math"
	"math/rand/v2"
	"slices"
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
		if z, score := m.run(rng); score > bestScore || best == nil {
			best, bestScore = slices.Clone(z), score
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

// mixture is the state of hard EM over the rows of a slice. Cells of finite domains are
// places in a table of log probabilities, which has one for missing cells, of zeros.
//
//	cell  [rows, discrete]   place of the cell's bin in the table
//	value [rows, numbers]    NaN where missing
//	table [places, stride]   log probability of a bin in each cluster
//	mean, deviation [numbers, k]
type mixture struct {
	k, rows   int
	first     []int32 // place of the first bin of each discrete variable; one more at the end
	cell      []int32
	numbers   int
	value     []float64
	table     []float64
	mean      []float64
	deviation []float64
	floor     []float64 // of the deviations, [numbers]
	stride    int       // k, rounded up to four clusters, which are added up together
	weight    []float64 // [stride] log
	cluster   []int32   // [rows]
}

// newMixture lays the cells of a slice out for EM of k components: a place of the table for each
// bin of the discrete columns and one for missing cells, and the values of the others. A
// deviation never falls below a tenth of its column's.
func newMixture(s slice, k int) *mixture {
	m := &mixture{k: k, rows: len(s.rows), stride: (k + 3) &^ 3, cluster: make([]int32, len(s.rows))}
	m.weight = make([]float64, m.stride)
	var discrete, numbers []int
	places := int32(0)
	for _, v := range s.vars {
		if s.all[v].domain > 0 {
			discrete = append(discrete, v)
			m.first = append(m.first, places)
			places += int32(s.all[v].count)
		} else {
			numbers = append(numbers, v)
		}
	}
	m.first = append(m.first, places)
	m.cell, m.table = make([]int32, len(s.rows)*len(discrete)), make([]float64, (int(places)+1)*m.stride)
	for j, v := range discrete {
		for i, r := range s.rows {
			at := places // missing
			if b := s.all[v].bins[r]; b != missing {
				at = m.first[j] + b
			}
			m.cell[i*len(discrete)+j] = at
		}
	}
	m.numbers = len(numbers)
	m.value = make([]float64, len(s.rows)*len(numbers))
	m.mean, m.deviation = make([]float64, len(numbers)*k), make([]float64, len(numbers)*k)
	for j, v := range numbers {
		for i, r := range s.rows {
			m.value[i*len(numbers)+j] = s.all[v].values[r]
		}
		m.floor = append(m.floor, 0.1*math.Sqrt(s.all[v].describe().Variance)+1e-9)
	}
	return m
}

// run does hard EM from k random rows and returns the cluster of each row, which the next
// run overwrites, and the log-likelihood of the rows in them.
func (m *mixture) run(rng *rand.Rand) ([]int32, float64) {
	m.start(rng)
	before := math.Inf(-1)
	for range maxRounds {
		score := m.assign()
		if math.Abs(score-before) < enoughGain*math.Abs(before) {
			return m.cluster, score
		}
		before = score
		m.fit()
	}
	return m.cluster, m.assign()
}

// start makes each cluster a smeared copy of a random row.
func (m *mixture) start(rng *rand.Rand) {
	const own = 0.6 // probability of the row's bin, beside an even share of the rest
	d := len(m.first) - 1
	clear(m.weight)
	for c, r := range rng.Perm(m.rows)[:min(m.k, m.rows)] {
		for j := range d {
			lo, hi := m.first[j], m.first[j+1]
			for at := lo; at < hi; at++ {
				p := (1 - own) / float64(hi-lo)
				if at == m.cell[r*d+j] {
					p += own
				}
				m.table[int(at)*m.stride+c] = math.Log(p)
			}
		}
		for j := range m.numbers {
			x := m.value[r*m.numbers+j]
			if x != x {
				x = 0
			}
			m.mean[j*m.k+c], m.deviation[j*m.k+c] = x, 10*m.floor[j] // the floor is a tenth of the spread
		}
	}
	for c := m.rows; c < m.k; c++ { // more clusters than rows
		m.weight[c] = math.Inf(-1)
	}
}

// assign moves each row to its likeliest cluster, the first of equals, and returns the
// log-likelihood.
func (m *mixture) assign() float64 {
	d, k := len(m.first)-1, m.k
	ll := make([]float64, m.stride)
	total := 0.0
	for r := range m.rows {
		cells := m.cell[r*d:][:d]
		for c := 0; c < m.stride; c += 4 {
			w := (*[4]float64)(m.weight[c:])
			a0, a1, a2, a3 := w[0], w[1], w[2], w[3]
			for _, at := range cells {
				p := (*[4]float64)(m.table[int(at)*m.stride+c:])
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
		total += ll[best]
	}
	return total
}

// fit sets each cluster's distributions to those of its rows.
func (m *mixture) fit() {
	d, k := len(m.first)-1, m.k
	rows := make([]float64, k)
	counts := make([]float64, len(m.table))
	sum, squares, seen := make([]float64, len(m.mean)), make([]float64, len(m.mean)), make([]float64, len(m.mean))
	for r, c := range m.cluster {
		rows[c]++
		for _, at := range m.cell[r*d:][:d] {
			counts[int(at)*m.stride+int(c)]++
		}
		for j, x := range m.value[r*m.numbers:][:m.numbers] {
			if x == x {
				i := j*k + int(c)
				sum[i], squares[i], seen[i] = sum[i]+x, squares[i]+x*x, seen[i]+1
			}
		}
	}
	for c := range k {
		m.weight[c] = math.Log(max(rows[c], 1e-9) / float64(m.rows))
		for j := range d {
			lo, hi := int(m.first[j]), int(m.first[j+1])
			total := 0.0
			for at := lo; at < hi; at++ {
				total += counts[at*m.stride+c] + codeCount
			}
			for at := lo; at < hi; at++ {
				m.table[at*m.stride+c] = math.Log((counts[at*m.stride+c] + codeCount) / total)
			}
		}
		for j := range m.numbers {
			if i := j*k + c; seen[i] > 0 {
				m.mean[i] = sum[i] / seen[i]
				m.deviation[i] = max(m.floor[j], math.Sqrt(max(0, squares[i]/seen[i]-m.mean[i]*m.mean[i])))
			}
		}
	}
}
