package engine

import (
	"context"
	"slices"
	"time"

	"github.com/pce-engine/pce/internal/parallel"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/simt"
)

// room is what a thread needs for the rows of a launch.
type room struct {
	values []float32 // cells, [variable][pitch]; nil where modules read bytes
	bytes  []byte    // these
	in     []any     // the cells, as programs get them
	out    []any     // results, likewise
	pitch  int       // rows from one variable to the next
	size   int       // of a device: which of its sizes they are
	excess []float64 // what the scale of continuous cells takes from log-likelihoods
	narrow []float32 // results of f32, [root][pitch]
	wide   []float64 // of f64
	ll     []float64 // log-likelihoods of classes, [row][root]
	again  []int     // rows that are computed again
}

// newRoom returns a room for the rows of a launch.
func (c *Code) newRoom(pitch int) *room {
	r, cells := &room{pitch: pitch, excess: make([]float64, c.rows), out: make([]any, 1)}, pitch*len(c.schema.Columns)
	if c.cell == simt.U8 {
		r.bytes = make([]byte, cells)
		r.in = []any{r.bytes}
	} else {
		r.values = make([]float32, cells)
		r.in = []any{r.values}
	}
	return r
}

// fit gives the room the smallest size of a device that holds n rows.
func (r *room) fit(n int, sizes []int, columns int) {
	r.size, _ = slices.BinarySearch(sizes, n)
	r.space(sizes[r.size], columns)
}

// space puts the columns of a room that many rows apart, at most as far as it was made for.
func (r *room) space(pitch, columns int) {
	if r.pitch == pitch {
		return
	}
	r.pitch = pitch
	if cells := r.pitch * columns; r.bytes != nil {
		r.bytes = r.bytes[:cells]
		r.in[0] = r.bytes
	} else {
		r.values = r.values[:cells]
		r.in[0] = r.values
	}
}

// run computes the first n rows by a program of the CPU.
func (r *room) run(ctx context.Context, p kernels.HostProgram, n int, results any) error {
	r.out[0] = results
	return p.RunSlices(ctx, 0, n, r.in, r.out)
}

// apart is what columns in a room are longer than its rows, in elements: columns that are a power of 2 long would all want the same few
// places of the first-level cache.
const apart = 16

// How launches are divided among threads: one of fewer rows, or one that takes less time, takes as long to begin as to compute, and
// groups are what all back ends take at a time, or several of what they take.
const (
	fewRows = 512
	fewTime = 50 * time.Microsecond
	group   = 64
)

// leastShare is how many rows a share of a launch has at least, where that many take fewTime; 0: not known.
func leastShare(n int) int {
	if n == 0 {
		return fewRows
	}
	return min((n+group-1)/group*group, fewRows)
}

// perThread is how many launches of each thread Evaluate waits for before it hands their results on: threads that are done with one
// take the next.
const perThread = 4

// rootCells is how many results a thread of the CPU has at a time: a launch of many roots takes fewer rows, since those of tens of
// thousands of categories would take gigabytes.
const rootCells = 1 << 18

// deviceCells is rootCells of a device with memory of its own, which takes many rows to be busy.
const deviceCells = 1 << 21

// hostRows is how many rows a launch of a model with that many roots takes on the CPU, of those that one root has.
func hostRows(rows, roots int) int { return min(rows, max(group, rootCells/roots/group*group)) }

// deviceRows is hostRows of a device with memory of its own: one of the sizes of its launches.
func deviceRows(rows, roots int) int {
	sizes := launchSizes(rows)
	most := sizes[0]
	for _, n := range sizes {
		if n*roots <= deviceCells {
			most = n
		}
	}
	return most
}

// ClassBytes plans what the results of a model with that many roots, as Classify has one, take beside the rows of launches that RowBytes
// plans.
func ClassBytes(rows, roots, threads int) int64 {
	const host = 8 + 8 // as the code gives them, and by rows
	if threads > 0 {
		return host * int64(threads) * int64(hostRows(rows, roots)) * int64(roots)
	}
	rows = deviceRows(rows, roots)
	bytes := host * int64(rows)
	for _, n := range launchSizes(rows) {
		bytes += 8 * int64(n)
	}
	return bytes * int64(roots)
}

// launches calls use for launches of rows at to at + n, of n rows in all, by a model, with a room for each. On the CPU they run on as
// many threads as the device has; the error is that of the first launch that has one.
func (c *Code) launches(l *loadedCode, rows int, use func(r *room, at, n int) error) error {
	if len(c.sizes) > 0 {
		most := deviceRows(c.rows, l.roots)
		for at := 0; at < rows; at += most {
			n := min(most, rows-at)
			c.rooms[0].fit(n, c.sizes, len(c.schema.Columns))
			if err := use(c.rooms[0], at, n); err != nil {
				return err
			}
		}
		return nil
	}
	most := hostRows(c.rows, l.roots)
	share := parallel.Shares{Threads: len(c.rooms), Least: min(leastShare(l.pace.Rows(fewTime)), most), Most: most, Step: group, Pace: &l.pace}
	return share.Do(rows, func(thread, at, n int) error {
		if c.rooms[thread] == nil {
			c.rooms[thread] = c.newRoom(c.rows + apart)
		}
		r := c.rooms[thread]
		r.space(most+apart, len(c.schema.Columns))
		return use(r, at, n)
	})
}
