package tune

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pce-engine/pce/compile/forest/schedule"
)

// Candidate is a schedule that is ready to be timed.
type Candidate interface {
	// Call computes a batch and returns how long it took.
	Call(ctx context.Context) (time.Duration, error)
	Close() error
}

// Loader makes a candidate of a schedule. An error says why the forest has no code under it.
type Loader func(s *schedule.Schedule) (Candidate, error)

// Point is a schedule of the space with what the model says of it and what was measured.
type Point struct {
	Params    Params  `json:"params"`
	Schedule  string  `json:"schedule"`
	Predicted float64 `json:"predicted_ns_per_row"`
	// Seconds is the least time of a call; 0 if it was not timed.
	Seconds float64 `json:"seconds"`
	Error   string  `json:"error,omitempty"` // why there is no code
}

// Final is a schedule that was timed once more, in turn with others.
type Final struct {
	Point  int       `json:"point"` // of Result.Points
	Median float64   `json:"median_seconds"`
	Times  []float64 `json:"seconds"`
}

// Result is what a search found.
type Result struct {
	Points []Point `json:"schedules"`
	Legal  int     `json:"legal"` // points that were timed, by the exhaustive search too, and so have code
	Timed  int     `json:"timed"` // by the search itself
	Choice int     `json:"choice"`
	// Exhaustive search: whether every point that has code was timed, the fastest one and how much longer the choice takes, as a
	// share, by medians of Finals, which holds the fastest by their first time and the choice.
	Complete bool    `json:"complete"`
	Best     int     `json:"best"`
	Distance float64 `json:"distance"`
	Finals   []Final `json:"finals"`
}

// Options say how a search goes.
type Options struct {
	Batch, Threads int
	// Exhaustive times every point after the search, and then the fastest and the choice in turn.
	Exhaustive bool
	// Deadline ends the timing of points early; zero for none.
	Deadline time.Time
	// Now is the clock of the deadline; nil for time.Now.
	Now func() time.Time
}

// Share is how many points of the space there are for one that a search times.
const Share = 50

// Bounds of what is timed, and the rounds in which the best are compared.
const (
	leastCalls   = 3
	mostCalls    = 12
	leastSeconds = 0.002
	giveUp       = 3.0 // walks that take this many times as long as the best of their kind are timed once
	finalists    = 10
	chosenFrom   = 3
	chosenRounds = 5
	tick         = 1e-9 // seconds, the shortest call
)

// FinalRounds is how often the fastest schedules are compared.
const FinalRounds = 10

// Search chooses a schedule of a space for a forest of a shape on a machine. It times at most one in Share of them, but
// one of each representation at least.
func Search(ctx context.Context, s *Shape, m *Machine, space []Params, load Loader, o Options) (*Result, error) {
	if len(space) == 0 {
		return nil, fmt.Errorf("%w: no schedule of the template is left; allow more representations", ErrTune)
	}
	if o.Batch < 1 || o.Threads < 1 {
		return nil, fmt.Errorf("%w: %d rows on %d threads; want one of each at least", ErrTune, o.Batch, o.Threads)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &searcher{load: load, o: o, shape: s, order: make([]int, len(space))}
	for i := range space {
		r.order[i] = i
		r.Points = append(r.Points, Point{Params: space[i], Schedule: space[i].Schedule(s.Depth).Text(), Predicted: m.Cost(s, &space[i], o.Batch, o.Threads)})
	}
	slices.SortStableFunc(r.order, func(a, b int) int { return cmp.Compare(r.Points[a].Predicted, r.Points[b].Predicted) })
	r.left = max(len(r.representations()), len(space)/Share)
	if err := r.choose(ctx); err != nil {
		return nil, err
	}
	r.Best = r.Choice
	if o.Exhaustive {
		if err := r.exhaust(ctx); err != nil {
			return nil, err
		}
	}
	for i := range r.Points {
		if r.Points[i].Seconds > 0 {
			r.Legal++
		}
	}
	return &r.Result, nil
}

// Rank returns the schedules of a space, the cheapest first by the model.
func Rank(s *Shape, m *Machine, space []Params, batch, threads int) []*schedule.Schedule {
	list := slices.Clone(space)
	slices.SortStableFunc(list, func(a, b Params) int {
		return cmp.Compare(m.Cost(s, &a, batch, threads), m.Cost(s, &b, batch, threads))
	})
	out := make([]*schedule.Schedule, len(list))
	for i := range list {
		out[i] = list[i].Schedule(s.Depth)
	}
	return out
}

type searcher struct {
	Result
	load  Loader
	o     Options
	shape *Shape
	order []int // of points, by the model
	left  int   // points that may be timed
}

// late reports whether the time is over.
func (r *searcher) late() bool { return !r.o.Deadline.IsZero() && r.o.Now().After(r.o.Deadline) }

// best returns the fastest point that was timed, of those that like accepts; -1 if there is none.
func (r *searcher) best(like func(p *Point) bool) int {
	found := -1
	for _, i := range r.order {
		p := &r.Points[i]
		if p.Seconds > 0 && like(p) && (found < 0 || p.Seconds < r.Points[found].Seconds) {
			found = i
		}
	}
	return found
}

func every(*Point) bool { return true }

// choose times the cheapest point of each representation by the model, then neighbours of the fastest, and then
// compares the fastest in turn.
func (r *searcher) choose(ctx context.Context) error {
	for _, how := range r.representations() {
		for _, i := range r.order { // the first that has code
			if p := &r.Points[i]; r.left > 0 && p.Params.Represent == how {
				if err := r.time(ctx, i); err != nil {
					return err
				}
				if p.Error == "" {
					break
				}
			}
		}
	}
	for r.left > 0 {
		next := r.neighbour()
		if next < 0 || r.Timed > 0 && r.late() {
			break
		}
		if err := r.time(ctx, next); err != nil {
			return err
		}
	}
	fastest := r.fastest(chosenFrom)
	if len(fastest) == 0 {
		return fmt.Errorf("%w: none of the schedules that were tried has code: %s", ErrTune, r.Points[r.order[0]].Error)
	}
	r.Choice = fastest[0]
	if len(fastest) > 1 && !r.late() {
		finals, err := r.compare(ctx, fastest, chosenRounds)
		if err != nil {
			return err
		}
		r.Choice = finals[0].Point
	}
	return nil
}

// representations returns those of the space, the cheapest first by the model.
func (r *searcher) representations() (list []string) {
	for _, i := range r.order {
		if how := r.Points[i].Params.Represent; !contains(list, how) {
			list = append(list, how)
		}
	}
	return list
}

// neighbour returns the point that is timed next: the cheapest by the model of those that differ in one parameter
// from the fastest that has such; else the cheapest of all. It is -1 where none is left, or walks are so much slower
// than the fastest that none of them will overtake it.
func (r *searcher) neighbour() int {
	walks := r.best(func(p *Point) bool { return p.Params.Represent != schedule.Sliced })
	top := r.best(every)
	if walks >= 0 && r.Points[walks].Seconds > giveUp*r.Points[top].Seconds {
		return -1
	}
	any := -1
	for _, i := range r.order {
		p := &r.Points[i]
		if p.Seconds > 0 || p.Error != "" {
			continue
		}
		if walks >= 0 && differ(&p.Params, &r.Points[walks].Params) == 1 {
			return i
		}
		if any < 0 {
			any = i
		}
	}
	return any
}

// differ counts the parameters in which two points differ.
func differ(a, b *Params) (n int) {
	for _, d := range []bool{
		a.Represent != b.Represent, a.RowTile != b.RowTile, a.TreeTile != b.TreeTile, a.CacheRows != b.CacheRows,
		a.TileNodes != b.TileNodes, a.ByDepth != b.ByDepth, a.Unroll != b.Unroll, a.Interleave != b.Interleave,
	} {
		if d {
			n++
		}
	}
	return n
}

// fastest returns up to n points in the order of their times.
func (r *searcher) fastest(n int) []int {
	var list []int
	for _, i := range r.order {
		if r.Points[i].Seconds > 0 {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(r.Points[a].Seconds, r.Points[b].Seconds) })
	return list[:min(n, len(list))]
}

// time times a point for the search.
func (r *searcher) time(ctx context.Context, i int) error {
	if err := r.measure(ctx, i); err != nil {
		return err
	}
	if r.Points[i].Error == "" {
		r.left--
		r.Timed++
	}
	return nil
}

// measure times a point: the least of some calls, or a note that it has no code.
func (r *searcher) measure(ctx context.Context, i int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p := &r.Points[i]
	c, err := r.load(p.Params.Schedule(r.shape.Depth))
	if err != nil {
		p.Error = err.Error()
		return nil
	}
	defer c.Close()
	limit := math.Inf(1)
	if b := r.best(func(q *Point) bool {
		return (q.Params.Represent == schedule.Sliced) == (p.Params.Represent == schedule.Sliced)
	}); b >= 0 {
		limit = giveUp * r.Points[b].Seconds
	}
	total := 0.0
	for n := 0; n <= mostCalls && (n <= leastCalls || total < leastSeconds); n++ { // the first warms memory
		d, err := c.Call(ctx)
		if err != nil {
			return err
		}
		seconds := max(d.Seconds(), tick)
		total += seconds
		if p.Seconds == 0 || seconds < p.Seconds {
			p.Seconds = seconds
		}
		if seconds > limit && (n > 0 || seconds > leastSeconds) { // cold memory may be all that a short first call takes
			break
		}
	}
	return nil
}

// exhaust times all points, and then the fastest and the choice in turn.
func (r *searcher) exhaust(ctx context.Context) error {
	r.Complete = true
	for i := range r.Points {
		if r.Points[i].Seconds > 0 || r.Points[i].Error != "" {
			continue
		}
		if r.late() {
			r.Complete = false
			break
		}
		if err := r.measure(ctx, i); err != nil {
			return err
		}
	}
	list := r.fastest(finalists)
	if !slices.Contains(list, r.Choice) {
		list = append(list, r.Choice)
	}
	finals, err := r.compare(ctx, list, FinalRounds)
	if err != nil {
		return err
	}
	r.Finals, r.Best = finals, finals[0].Point
	for _, f := range finals {
		if f.Point == r.Choice {
			r.Distance = f.Median/finals[0].Median - 1
		}
	}
	return nil
}

// compare times points in turn and returns them by their medians.
func (r *searcher) compare(ctx context.Context, list []int, rounds int) ([]Final, error) {
	schedules := make([]*schedule.Schedule, len(list))
	for k, i := range list {
		schedules[k] = r.Points[i].Params.Schedule(r.shape.Depth)
	}
	times, err := InTurn(ctx, r.load, schedules, rounds)
	if err != nil {
		return nil, err
	}
	finals := make([]Final, len(list))
	for k, i := range list {
		finals[k] = Final{Point: i, Median: Median(times[k]), Times: times[k]}
	}
	slices.SortStableFunc(finals, func(a, b Final) int { return cmp.Compare(a.Median, b.Median) })
	return finals, nil
}

// InTurn times schedules in turn, each round the least of three calls, and returns the seconds of each.
func InTurn(ctx context.Context, load Loader, list []*schedule.Schedule, rounds int) ([][]float64, error) {
	calls := make([]Candidate, len(list))
	for k, s := range list {
		c, err := load(s)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		if calls[k] = c; rounds > 0 {
			if _, err := c.Call(ctx); err != nil { // which warms memory
				return nil, err
			}
		}
	}
	times := make([][]float64, len(list))
	for range rounds {
		for k, c := range calls {
			least := math.Inf(1)
			for range leastCalls {
				d, err := c.Call(ctx)
				if err != nil {
					return nil, err
				}
				least = min(least, max(d.Seconds(), tick))
			}
			times[k] = append(times[k], least)
		}
	}
	return times, nil
}

// Median returns the middle of some times, of an even number, as the rounds of Finals are, the middle between two.
func Median(times []float64) float64 {
	sorted := slices.Sorted(slices.Values(times))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
