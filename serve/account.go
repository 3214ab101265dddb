package serve

import "time"

// account is what a lane knows of a model: what waits for it and what its batches took. The versions of a model share
// one, as their clients are the same: while requests still wait for the version before, those for the new one find
// the room and the turn that are left. Its lane's mu guards it.
type account struct {
	waiting  int       // rows in queues
	reserved int       // rows of requests that are being decoded
	full     time.Time // when a request was refused for want of room
	ran      float64   // nanoseconds that batches took
	used     float64   // the same as turns count it
	all      cost      // of all batches
	queries  map[string]*cost
	// Running means of requests, by which rows are estimated from bytes (admit.go).
	meanRows, meanBytes float64
}

// of returns the cost of a query, which may be new.
func (a *account) of(query string) *cost {
	c := a.queries[query]
	if c == nil {
		c = new(cost)
		a.queries[query] = c
	}
	return c
}

// open gives a version its account: that of the version before, where both have a lane.
func (l *lane) open(v, before *version) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if before != nil && before.lane == l {
		v.account = before.account
	} else {
		v.account = &account{queries: map[string]*cost{}}
	}
	v.costs = make([]*cost, len(v.queries))
	for i := range v.queries {
		v.costs[i] = v.account.of(v.queries[i].Name)
	}
}

// cost is what batches took lately: sums in which each batch counts 15/16 of the one
// after it, so that long batches weigh more than short ones.
type cost struct{ nanoseconds, rows float64 }

func (c *cost) add(rows int, took time.Duration) {
	c.nanoseconds += float64(took) - c.nanoseconds/16
	c.rows += float64(rows) - c.rows/16
}

// perRow returns nanoseconds, 0 before the first batch.
func (c *cost) perRow() float64 {
	if c.rows == 0 {
		return 0
	}
	return c.nanoseconds / c.rows
}
