// Package assign decides which worker gets the next shard. Its functions depend
// on their arguments alone.
//
// # Shapes and units
//
// Speeds are rows per second, and only their ratios count.
//
// # Errors
//
// There are none: where no worker may have the shard, Next returns -1.
//
// # Source
//
// The rule is list scheduling by earliest finishing time, of Graham, "Bounds on
// Multiprocessing Timing Anomalies", SIAM J. Appl. Math. 1969.
package assign

import "slices"

// Worker is what assignment knows of a worker.
type Worker struct {
	Leased int     // shards that it has a lease on
	Depth  int     // how many it may have
	Speed  float64 // rows per second; 0: unknown
	Barred bool    // it may not have the shard
}

// Next says who gets the next shard: the worker that would finish it first if
// all shards took equally many rows. If that one holds as many leases as it may, no worker
// gets the shard now, since waiting for it is faster. -1 if no worker gets it.
func Next(workers []Worker) int {
	known, n := 0.0, 0
	for _, w := range workers {
		if w.Speed > 0 {
			known, n = known+w.Speed, n+1
		}
	}
	mean := 1.0
	if n > 0 {
		mean = known / float64(n)
	}
	best, at := 0.0, -1
	for i, w := range workers {
		if w.Barred {
			continue
		}
		speed := w.Speed
		if !(speed > 0) {
			speed = mean
		}
		if end := float64(w.Leased+1) / speed; at < 0 || end < best {
			best, at = end, i
		}
	}
	if at >= 0 && workers[at].Leased >= workers[at].Depth {
		return -1
	}
	return at
}

// Stretch is how many neighbouring shards are leased at once, so that what a
// worker holds stays a short list of ranges.
func Stretch(pending, workers int) int { return min(max(1, pending/(16*max(1, workers))), 64) }

// Median is that of the last few speeds.
type Median struct {
	last [15]float64
	n    int
	mid  float64
}

// Add takes a speed.
func (m *Median) Add(x float64) {
	m.last[m.n%len(m.last)] = x
	m.n++
	have := slices.Clone(m.last[:min(m.n, len(m.last))])
	slices.Sort(have)
	m.mid = have[len(have)/2]
}

// Value returns the median, 0 before the first speed.
func (m *Median) Value() float64 { return m.mid }
