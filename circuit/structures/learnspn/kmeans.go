package learnspn

import (
	"math"
	"math/rand/v2"
	"slices"
)

// clusterKMeans parts the rows of a slice into at most k clusters by k-means of the features
// that the randomized dependence coefficient has of all columns. Of some restarts, from rows
// drawn far from one another, the tightest partition counts.
func clusterKMeans(s slice, k int, rng *rand.Rand) [][]int32 {
	points, d := rdcPoints(s, rng)
	var best []int32
	tightest := math.Inf(1)
	for range restarts {
		if z, spread := kMeans(points, d, k, rng); spread < tightest || best == nil {
			best, tightest = z, spread
		}
	}
	return byCluster(s.rows, best, k)
}

// rdcPoints returns the features of all columns as points [rows, d].
func rdcPoints(s slice, rng *rand.Rand) (points []float64, d int) {
	d = rdcSines * len(s.vars)
	points = make([]float64, len(s.rows)*d)
	for j, v := range s.vars {
		x := &s.all[v]
		f := rdcFeatures(x, s.rows, drawWeights(x.rdcInputs(), rng))
		centre(f)
		for i := range s.rows {
			copy(points[i*d+j*rdcSines:], f.RawRowView(i))
		}
	}
	return points, d
}

// kMeans does Lloyd's algorithm from k-means++ and returns the cluster of each point and the
// sum of squared distances to the clusters' means.
func kMeans(points []float64, d, k int, rng *rand.Rand) ([]int32, float64) {
	n := len(points) / d
	k = min(k, n)
	means := slices.Clone(points[rng.IntN(n)*d:][:d])
	nearest := make([]float64, n)
	for i := range nearest {
		nearest[i] = math.Inf(1)
	}
	for len(means) < k*d {
		last, total := means[len(means)-d:], 0.0
		for i := range nearest {
			nearest[i] = min(nearest[i], distance(points[i*d:][:d], last))
			total += nearest[i]
		}
		at, draw := n-1, rng.Float64()*total
		for i, w := range nearest {
			if draw -= w; draw < 0 {
				at = i
				break
			}
		}
		means = append(means, points[at*d:][:d]...)
	}
	cluster, before := make([]int32, n), math.MaxFloat64 // with infinity, of which a share is infinite too, the first round would be the last
	for {
		spread := 0.0
		for i := range cluster {
			least := math.Inf(1)
			for c := range k {
				if x := distance(points[i*d:][:d], means[c*d:][:d]); x < least {
					least, cluster[i] = x, int32(c)
				}
			}
			spread += least
		}
		if !(before-spread > enoughGain*before) {
			return cluster, spread
		}
		before = spread
		count := make([]float64, k)
		sums := make([]float64, len(means))
		for i, c := range cluster {
			count[c]++
			for j, x := range points[i*d:][:d] {
				sums[int(c)*d+j] += x
			}
		}
		for c := range k {
			for j := range d {
				if count[c] > 0 { // else the mean stays where it was
					means[c*d+j] = sums[c*d+j] / count[c]
				}
			}
		}
	}
}

// distance returns the squared distance of two points.
func distance(a, b []float64) float64 {
	sum := 0.0
	for i, x := range a {
		sum += (x - b[i]) * (x - b[i])
	}
	return sum
}
