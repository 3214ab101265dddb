package dataset

// Schedule says which rows each step of each epoch takes. It is a pure function
// of its fields.
type Schedule struct {
	Rows      int    // rows of the source
	BatchRows int    // rows of a step; the last of an epoch may have fewer
	Seed      uint64 // of the permutations
	InOrder   bool   // take the rows from first to last in every epoch
}

// Steps returns the number of steps of an epoch.
func (s Schedule) Steps() int { return (s.Rows + s.BatchRows - 1) / s.BatchRows }

// Order returns the rows of an epoch, all of them.
func (s Schedule) Order(epoch int) []int {
	if s.InOrder {
		return span(0, s.Rows)
	}
	return Order(s.Seed, epoch, s.Rows)
}

// Step returns the part of an epoch's order that a step takes.
func (s Schedule) Step(order []int, step int) []int {
	lo := step * s.BatchRows
	return order[lo:min(lo+s.BatchRows, s.Rows)]
}

// Validate reports why the schedule cannot be run.
func (s Schedule) Validate() error {
	if s.Rows < 1 || s.BatchRows < 1 {
		return badSetting("schedule of %d rows in batches of %d; both must be at least 1", s.Rows, s.BatchRows)
	}
	return nil
}

// Span is a range of rows: Lo up to, without, Hi.
type Span struct{ Lo, Hi int }

// Shards divides rows rows into spans of shardRows rows, the last maybe
// shorter. A shard is the unit whose flows are added as one.
func Shards(rows, shardRows int) []Span {
	if rows <= 0 || shardRows <= 0 {
		return nil
	}
	var out []Span
	for lo := 0; lo < rows; lo += shardRows {
		out = append(out, Span{lo, min(lo+shardRows, rows)})
	}
	return out
}
