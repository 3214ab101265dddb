package engine

import (
	"sync"
	"sync/atomic"
)

// room is what a thread needs for the rows of a launch.
type room struct {
	x      []float32 // [variable][pitch]
	pitch  int       // rows from one variable to the next
	excess []float64 // what the scale of continuous cells takes from log-likelihoods
	narrow []float32 // results of f32, [root][pitch]
	wide   []float64 // of f64
	again  []int     // rows that are computed again
}

func newRoom(rows, pitch, variables int) *room {
	return &room{x: make([]float32, pitch*variables), pitch: pitch, excess: make([]float64, rows)}
}

// apart is what columns in a room are longer than its rows, in elements: columns that are a power of 2 long would all want the same few
// places of the first-level cache.
const apart = 16

// perThread is how many launches of each thread Evaluate waits for before it hands their results on: threads that are done with one
// take the next.
const perThread = 4

// launches calls use for launches of rows at to at + n, of n rows in all, with a room for each. On the CPU they run on as many
// threads as the device has; the error is that of the first launch that has one.
func (c *Code) launches(rows int, use func(r *room, at, n int) error) error {
	count := (rows + c.rows - 1) / c.rows
	launch := func(thread, i int) error {
		if c.rooms[thread] == nil {
			c.rooms[thread] = newRoom(c.rows, c.rows+apart, len(c.schema.Columns))
		}
		at := i * c.rows
		return use(c.rooms[thread], at, min(c.rows, rows-at))
	}
	threads := min(count, len(c.rooms))
	if threads == 1 {
		for i := range count {
			if err := launch(0, i); err != nil {
				return err
			}
		}
		return nil
	}
	errs := make([]error, count)
	var next atomic.Int64
	var failed atomic.Bool
	work := func(thread int) {
		for !failed.Load() {
			i := int(next.Add(1)) - 1
			if i >= count {
				return
			}
			if errs[i] = launch(thread, i); errs[i] != nil {
				failed.Store(true)
			}
		}
	}
	var wait sync.WaitGroup
	for thread := range threads - 1 {
		wait.Go(func() { work(1 + thread) })
	}
	work(0)
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
