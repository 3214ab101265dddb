package pce

import "math/bits"

// firstBytes is what an engine of a Model may take for its launches before a call
// asks for many rows. Where the rows of a full launch take less, as those of most
// circuits do, the first engine has room for all of them.
const firstBytes = 64 << 20

// launchRows says how many rows the launches of a Model's engines may have. Results
// do not depend on it.
type launchRows struct {
	first int // of an engine whatever it is asked for
	most  int // that memory allows, at most Options.Rows
}

// queryRows plans the launches of a Model.
func (b *Blueprint) queryRows(o Options) (launchRows, error) {
	full, err := b.Memory(Load{Options: o})
	if err != nil {
		return launchRows{}, err
	}
	work := func(m MemoryPlan) int64 { return m.Values + m.Flows + m.Scratch }
	total := func(m MemoryPlan) int64 { return m.Total }
	fits := func(m MemoryPlan) bool { return o.MaxMemory <= 0 || m.Total <= o.MaxMemory }
	r := launchRows{first: full.Rows, most: full.Rows}
	if fits(full) && work(full) <= firstBytes {
		return r, nil
	}
	o.Rows = 1
	one, err := b.Memory(Load{Options: o})
	if err != nil {
		return launchRows{}, err
	}
	r.first = rowsWithin(firstBytes, work(one), work(full), full.Rows)
	if !fits(full) {
		r.most = rowsWithin(o.MaxMemory, total(one), total(full), full.Rows)
		for o.Rows = r.most; o.Rows > 1; o.Rows /= 2 { // memory need not grow evenly with rows
			m, err := b.Memory(Load{Options: o})
			if err != nil {
				return launchRows{}, err
			}
			if fits(m) {
				break
			}
		}
		r.most = o.Rows
	}
	r.first = min(r.first, r.most)
	return r, nil
}

// rowsWithin returns the largest power of two below full rows that takes at most
// so many bytes, where one row and full rows take what is given, and at least 1.
func rowsWithin(bytes, one, all int64, full int) int {
	rows := 1
	for n := 2; n < full && one+(all-one)/int64(full-1)*int64(n-1) <= bytes; n *= 2 {
		rows = n
	}
	return rows
}

// of returns the rows of a launch for a call that asks for so many.
func (r launchRows) of(asked int) int {
	if asked <= r.first {
		return r.first
	}
	return min(r.most, 1<<bits.Len(uint(asked-1)))
}
