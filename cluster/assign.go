package cluster

import "slices"

// worth is what assignment knows of a worker.
type worth struct {
	leased int     // shards in its hands
	depth  int     // how many it may have
	speed  float64 // rows a second; 0: unknown
}

// assign says who gets the next shard: the worker that would finish it first if
// all shards took equally many rows. If that one has its hands full, nobody does:
// waiting for it is faster. barred workers get none; -1 if there is no taker.
func assign(workers []worth, barred []bool) int {
	known, n := 0.0, 0
	for _, w := range workers {
		if w.speed > 0 {
			known, n = known+w.speed, n+1
		}
	}
	mean := 1.0
	if n > 0 {
		mean = known / float64(n)
	}
	best, at := 0.0, -1
	for i, w := range workers {
		if barred[i] {
			continue
		}
		speed := w.speed
		if !(speed > 0) {
			speed = mean
		}
		if end := float64(w.leased+1) / speed; at < 0 || end < best {
			best, at = end, i
		}
	}
	if at >= 0 && workers[at].leased >= workers[at].depth {
		return -1
	}
	return at
}

// stretch is how many neighbouring shards are leased at once, so that what a
// worker holds stays a short list of ranges.
func stretch(todo, workers int) int { return min(max(1, todo/(16*max(1, workers))), 64) }

// median keeps the last few speeds.
type median struct {
	last [15]float64
	n    int
}

func (m *median) add(x float64) {
	m.last[m.n%len(m.last)] = x
	m.n++
}

func (m *median) value() float64 {
	have := slices.Clone(m.last[:min(m.n, len(m.last))])
	if len(have) == 0 {
		return 0
	}
	slices.Sort(have)
	return have[len(have)/2]
}

// bestPath returns the first kernel path of the first member that all members
// have, "" if there is none.
func bestPath(members []Member) string {
	if len(members) == 0 {
		return ""
	}
	for _, path := range members[0].Paths {
		if !slices.ContainsFunc(members, func(m Member) bool { return !slices.Contains(m.Paths, path) }) {
			return path
		}
	}
	return ""
}
