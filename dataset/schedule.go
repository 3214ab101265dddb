package dataset

// Schedule says which rows each step of each epoch takes. It is a pure function
// of its fields.
//
// The rows of an epoch are spread evenly over its steps: sizes differ by at most
// one row, and the larger steps come first. If all steps but the last were full,
// the last could be left with a handful of rows, and these would move the
// parameters as far as a full batch does.
type Schedule struct {
	Rows      int    // rows of the source
	BatchRows int    // most rows of a step; an epoch has as few steps as this allows
	MinSteps  int    // fewest steps of an epoch, as long as each gets a row; 0: as few as BatchRows allows
	Seed      uint64 // of the permutations
	InOrder   bool   // take the rows from first to last in every epoch
}

// Steps returns the number of steps of an epoch, the same for each.
func (s Schedule) Steps() int {
	return max((s.Rows-1)/s.BatchRows+1, min(s.MinSteps, s.Rows))
}

// StepRows returns the number of rows of a step, counted from 0 within its epoch.
// No step has more than the first.
func (s Schedule) StepRows(step int) int {
	part := s.part(step)
	return part.Hi - part.Lo
}

// part returns where in an epoch's order the rows of a step lie.
func (s Schedule) part(step int) Span {
	steps := s.Steps()
	rows, larger := s.Rows/steps, s.Rows%steps // the first larger steps have one row more
	return Span{step*rows + min(step, larger), (step+1)*rows + min(step+1, larger)}
}

// Order returns the rows of an epoch, all of them.
func (s Schedule) Order(epoch int) []int {
	if s.InOrder {
		return span(0, s.Rows)
	}
	return Order(s.Seed, epoch, s.Rows)
}

// Step returns the part of an epoch's order that a step takes.
func (s Schedule) Step(order []int, step int) []int {
	part := s.part(step)
	return order[part.Lo:part.Hi]
}

// Validate reports why the schedule cannot be run, with an error that matches ErrSetting. The
// other methods may be called when it returns nil.
func (s Schedule) Validate() error {
	if s.Rows < 1 || s.BatchRows < 1 {
		return badSetting("schedule of %d rows in batches of %d; both must be at least 1", s.Rows, s.BatchRows)
	}
	if s.MinSteps < 0 {
		return badSetting("schedule of at least %d steps per epoch; want 0 or more", s.MinSteps)
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
