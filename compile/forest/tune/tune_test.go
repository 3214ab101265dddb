package tune

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pce-engine/pce/compile/forest/schedule"
	"github.com/pce-engine/pce/forest"
)

// shapeOf is a shape of trees of given depths.
func shapeOf(features int, depths ...int) *Shape {
	s := &Shape{Trees: len(depths), Features: features, Outputs: 1, Depths: depths, Even: true}
	for _, d := range depths {
		s.Nodes += 2<<d - 1
		s.Depth = max(s.Depth, d)
		s.Even = s.Even && d == depths[0]
	}
	return s
}

func hundred(depth int) *Shape { return shapeOf(28, slices.Repeat([]int{depth}, 100)...) }

// TestSpace: points of the template are legal, exact and all different, and there are at least 500 for a usual forest.
func TestSpace(t *testing.T) {
	uneven := shapeOf(5, append(slices.Repeat([]int{3}, 50), slices.Repeat([]int{9}, 50)...)...)
	for _, c := range []struct {
		s     *Shape
		batch int
		least int
		most  int
	}{
		{hundred(8), 256, 500, 1000}, {hundred(8), 4096, 500, 2000}, {uneven, 4096, 500, 2000}, {hundred(64), 64, 200, 500}, {hundred(65), 64, 100, 250},
		{shapeOf(1, 1), 1, 13, 13}, {shapeOf(1, 0), 1, 13, 13}, {shapeOf(1, 2, 2), 64, 73, 73}, {shapeOf(1, 2, 2), 65, 145, 145}, {shapeOf(1), 1, 13, 13},
	} {
		all := Space(c.s, c.batch)
		if n := len(all); n < c.least || n > c.most {
			t.Errorf("%d trees of depth %d, %d rows: %d points, want %d to %d", c.s.Trees, c.s.Depth, c.batch, n, c.least, c.most)
		}
		seen := map[string]bool{}
		for _, p := range all {
			sch := p.Schedule(c.s.Depth)
			n, err := sch.Nest()
			if err != nil || !n.Exact || n.Represent != p.Represent {
				t.Fatalf("%+v: %v", p, err)
			}
			if text := sch.Text(); seen[text] {
				t.Fatalf("%+v is twice\n%s", p, text)
			} else {
				seen[text] = true
			}
			if p.RowTile > rowTiles[0] && p.RowTile >= 4*c.batch {
				t.Errorf("tiles of %d for %d rows", p.RowTile, c.batch)
			}
		}
	}
	only := Space(hundred(8), 256, schedule.Sparse)
	for _, p := range only {
		if p.Represent != schedule.Sparse {
			t.Errorf("%+v is not allowed", p)
		}
	}
	if len(only) == 0 || len(Space(hundred(8), 256, "none")) > 0 {
		t.Error("a space of one representation, or of none, is wrong")
	}
}

// fake is a machine whose times are a function of the parameters.
type fake struct {
	at     map[string]Params
	time   func(p Params) time.Duration // 0: no code
	loads  map[string]int
	calls  map[Params]int
	cold   time.Duration // what a first call takes besides twice its time
	closed int
	open   int
}

func newFake(s *Shape, space []Params, times func(p Params) time.Duration) *fake {
	f := &fake{at: map[string]Params{}, time: times, loads: map[string]int{}, calls: map[Params]int{}}
	for _, p := range space {
		f.at[p.Schedule(s.Depth).Text()] = p
	}
	return f
}

var errNoCode = errors.New("no code")

func (f *fake) load(s *schedule.Schedule) (Candidate, error) {
	p, ok := f.at[s.Text()]
	if !ok {
		return nil, errors.New("a schedule that is not of the space")
	}
	f.loads[s.Text()]++
	if f.time(p) == 0 {
		return nil, errNoCode
	}
	f.open++
	return &fakeCall{f, p, 0}, nil
}

type fakeCall struct {
	f *fake
	p Params
	n int
}

// Call is slower the first time, as memory is cold.
func (c *fakeCall) Call(ctx context.Context) (time.Duration, error) {
	c.n++
	d := c.f.time(c.p)
	if c.f.calls[c.p]++; c.n == 1 {
		d += d + c.f.cold
	}
	return d, ctx.Err()
}

func (c *fakeCall) Close() error { c.f.closed++; return nil }

// hills has its least at array, tiles of 256 rows and 8 trees, unrolled, 4 together.
func hills(p Params) time.Duration {
	if p.Represent == schedule.Sliced {
		return 10 * time.Millisecond
	}
	x := 1.0
	for _, slow := range []struct {
		on bool
		by float64
	}{
		{p.Represent == schedule.Sparse, 1.3}, {p.Represent == schedule.Reorg, 1.2}, {p.RowTile != 256, 1.1}, {p.TreeTile != 8, 1.15}, {p.CacheRows, 1.02},
		{p.TileNodes > 1, 1.9}, {p.ByDepth, 1.5}, {!p.Unroll, 1.4}, {p.Interleave == 1, 2}, {p.Interleave == 2, 1.3}, {p.Interleave == 8, 1.1},
	} {
		if slow.on {
			x *= slow.by
		}
	}
	return time.Duration(x * float64(5*time.Millisecond))
}

// TestSearch: with one fiftieth of the points timed, the choice is within a tenth of the best of all, every candidate is
// closed, and an exhaustive search says by how much it is off.
func TestSearch(t *testing.T) {
	for _, s := range []*Shape{hundred(8), shapeOf(5, append(slices.Repeat([]int{3}, 50), slices.Repeat([]int{9}, 50)...)...)} {
		space := Space(s, 4096)
		for _, path := range []string{"avx512fp16", "avx2", "generic", "unheard"} {
			within := 1.1
			if MachineOf(path).Name == "generic" { // whose model holds other schedules for fast
				within = 1.2
			}
			f := newFake(s, space, hills)
			r, err := Search(t.Context(), s, MachineOf(path), space, f.load, Options{Batch: 4096, Threads: 2})
			if err != nil {
				t.Fatal(err)
			}
			if r.Timed > len(space)/Share || r.Timed < 2 || len(f.loads) > len(space)/Share || f.open != f.closed || r.Best != r.Choice {
				t.Errorf("%s: %d points timed, %d loaded, %d of %d closed", path, r.Timed, len(f.loads), f.closed, f.open)
			}
			if got := hills(r.Points[r.Choice].Params); float64(got) > within*float64(5*time.Millisecond) {
				t.Errorf("%s: the choice takes %v, the best 5 ms: %+v", path, got, r.Points[r.Choice].Params)
			}
		}
		f := newFake(s, space, hills)
		r, err := Search(t.Context(), s, MachineOf("avx512"), space, f.load, Options{Batch: 4096, Threads: 1, Exhaustive: true})
		if err != nil || !r.Complete || r.Legal != len(space) || len(f.loads) != len(space) || f.open != f.closed {
			t.Fatalf("%v: complete %v, %d legal, %d of %d loaded", err, r.Complete, r.Legal, len(f.loads), len(space))
		}
		best, chosen := hills(r.Points[r.Best].Params), hills(r.Points[r.Choice].Params)
		if best != 5*time.Millisecond || math.Abs(r.Distance-(float64(chosen)/float64(best)-1)) > 1e-6 || len(r.Finals) < finalists {
			t.Errorf("the best takes %v, the choice %v, distance %v of %d finalists", best, chosen, r.Distance, len(r.Finals))
		}
		for i, fin := range r.Finals {
			if len(fin.Times) != FinalRounds || i > 0 && fin.Median < r.Finals[i-1].Median {
				t.Errorf("finalist %d: %+v", i, fin)
			}
		}
	}
}

// TestSearchCold: a short call that takes many times as long while memory is cold is judged by the calls behind it. A long
// one, of a schedule that is far behind, is made once.
func TestSearchCold(t *testing.T) {
	s := hundred(8)
	space := Space(s, 64)
	for _, c := range []struct {
		short time.Duration // of the fastest
		calls int           // of one that takes ten times as long
	}{{5 * time.Microsecond, 2}, {5 * time.Millisecond, 1}} {
		times := func(p Params) time.Duration {
			if p.Represent == schedule.Sparse {
				return 10 * c.short
			}
			return hills(p) / (5 * time.Millisecond / c.short)
		}
		f := newFake(s, space, times)
		f.cold = 100 * time.Microsecond
		r, err := Search(t.Context(), s, MachineOf("avx2"), space, f.load, Options{Batch: 64, Threads: 1, Exhaustive: true})
		if err != nil {
			t.Fatal(err)
		}
		for i := range r.Points {
			p := &r.Points[i]
			if want := times(p.Params); want < time.Millisecond && p.Seconds != want.Seconds() {
				t.Fatalf("a call of %v, cold %v more, is said to take %v s: %+v", want, want+f.cold, p.Seconds, p.Params)
			}
		}
		last := space[slices.IndexFunc(space, func(p Params) bool { return p.Represent == schedule.Sparse && p.TileNodes > 1 && p.ByDepth })]
		if f.calls[last] > c.calls {
			t.Errorf("a schedule that is far behind is called %d times, want %d at most", f.calls[last], c.calls)
		}
	}
}

// TestSearchFew: in a space of fewer points than a search leaves out, one of each representation is timed, so one that the model holds
// for slow is found; of one representation one point is.
func TestSearchFew(t *testing.T) {
	s := shapeOf(1, 2, 2)
	for _, allowed := range [][]string{nil, {schedule.Sparse}} {
		space := Space(s, 64, allowed...)
		fast := Representations()
		if allowed != nil {
			fast = allowed
		}
		for _, how := range fast {
			f := newFake(s, space, func(p Params) time.Duration {
				if p.Represent == how {
					return time.Millisecond
				}
				return 2 * time.Millisecond
			})
			r, err := Search(t.Context(), s, MachineOf("avx512"), space, f.load, Options{Batch: 64, Threads: 1})
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Points[r.Choice].Params.Represent; got != how || r.Timed != len(fast) || len(space)/Share >= len(Representations()) {
				t.Errorf("%s is the fastest of %d points: %d timed, chosen is %s", how, len(space), r.Timed, got)
			}
		}
	}
}

// TestMedian: the median of an even number of times, such as the ten rounds of the final ones, lies between the two in the middle.
func TestMedian(t *testing.T) {
	for want, times := range map[float64][]float64{3: {9, 1, 4, 2}, 2: {9, 1, 2}, 5: {5}} {
		if got := Median(times); got != want {
			t.Errorf("the median of %v is %v, want %v", times, got, want)
		}
	}
}

// TestDistance: an exhaustive search finds what the model hides from the choice, and says how far off it is.
func TestDistance(t *testing.T) {
	s := hundred(8)
	space := Space(s, 4096, schedule.Array)
	hidden := func(p Params) bool { return p.TreeTile == 32 && p.TileNodes == 3 } // more than there are finalists
	times := func(p Params) time.Duration {
		if hidden(p) {
			return time.Millisecond
		}
		return hills(p)
	}
	r, err := Search(t.Context(), s, MachineOf("avx2"), space, newFake(s, space, times).load, Options{Batch: 4096, Threads: 1, Exhaustive: true})
	if err != nil {
		t.Fatal(err)
	}
	if best, chosen := r.Points[r.Best].Params, r.Points[r.Choice].Params; !hidden(best) || hidden(chosen) || len(r.Finals) != finalists+1 || math.Abs(r.Distance-(hills(chosen).Seconds()/0.001-1)) > 1e-6 {
		t.Errorf("the best is %+v, the choice %+v, distance %v of %d", best, chosen, r.Distance, len(r.Finals))
	}
}

// TestSearchWithout: representations without code are passed over, walks that are far behind are left, and errors end.
func TestSearchWithout(t *testing.T) {
	s := hundred(8)
	space := Space(s, 256)
	search := func(times func(p Params) time.Duration, o Options) (*Result, *fake, error) {
		f := newFake(s, space, times)
		o.Batch, o.Threads = 256, 1
		r, err := Search(t.Context(), s, MachineOf("avx512"), space, f.load, o)
		return r, f, err
	}
	r, _, err := search(func(p Params) time.Duration {
		if p.Represent != schedule.Sparse {
			return 0
		}
		return hills(p)
	}, Options{Exhaustive: true})
	if err != nil || r.Points[r.Choice].Params.Represent != schedule.Sparse || r.Legal != len(Space(s, 256, schedule.Sparse)) || r.Timed > len(space)/Share {
		t.Errorf("%v: sparse alone gives %+v of %d", err, r.Points[r.Choice], r.Legal)
	}
	r, _, err = search(func(p Params) time.Duration {
		if p.Represent == schedule.Sliced {
			return time.Millisecond
		}
		return hills(p)
	}, Options{})
	if err != nil || r.Points[r.Choice].Params.Represent != schedule.Sliced || r.Timed != len(Representations()) {
		t.Errorf("%v: sliced far ahead: %+v with %d timed", err, r.Points[r.Choice], r.Timed)
	}
	if _, _, err = search(func(Params) time.Duration { return 0 }, Options{}); !errors.Is(err, ErrTune) || !strings.Contains(err.Error(), "no code") {
		t.Errorf("no code at all: %v", err)
	}
	clock := time.Unix(0, 0)
	r, f, err := search(hills, Options{Exhaustive: true, Deadline: clock.Add(60 * time.Second), Now: func() time.Time { clock = clock.Add(time.Second); return clock }})
	if err != nil || r.Complete || len(f.loads) > 70 || len(f.loads) < 50 || len(r.Finals) == 0 || r.Legal != len(f.loads) {
		t.Errorf("%v: a deadline: complete %v, %d loaded, %d legal", err, r.Complete, len(f.loads), r.Legal)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Search(ctx, s, MachineOf("avx2"), space, newFake(s, space, hills).load, Options{Batch: 1, Threads: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	for _, o := range []Options{{Batch: 0, Threads: 1}, {Batch: 1}} {
		if _, err := Search(t.Context(), s, MachineOf("avx2"), space, newFake(s, space, hills).load, o); !errors.Is(err, ErrTune) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := Search(t.Context(), s, MachineOf("avx2"), nil, nil, Options{Batch: 1, Threads: 1}); !errors.Is(err, ErrTune) {
		t.Errorf("no space: %v", err)
	}
}

// TestSurvey: how deep rows go is that of the deepest of a vector, and of trees that walk together.
func TestSurvey(t *testing.T) {
	// A chain: row x goes down to the first node whose threshold is above x.
	chain := func(depth int) forest.Tree {
		var tr forest.Tree
		for d := range depth {
			k := int32(len(tr.Nodes))
			tr.Nodes = append(tr.Nodes, forest.Node{Test: forest.Less, Threshold: float64(d + 1), Yes: k + 1, No: k + 2}, forest.Node{})
		}
		tr.Nodes = append(tr.Nodes, forest.Node{})
		return tr
	}
	f := &forest.Forest{Features: 1, Outputs: 1, Trees: []forest.Tree{chain(4), chain(1), chain(6)}}
	s := Survey(f, []float64{0.5, 2.5, 0.5}, 2)
	if s.Depth != 6 || s.Even || !slices.Equal(s.Depths, []int{4, 1, 6}) || s.Nodes != 9+3+13 {
		t.Fatalf("%+v", s)
	}
	// Vectors of two rows from 0, 1 and 2: depths 3 1 3, 3 1 3 and 1 1 1.
	if got, want := s.steps(1, false), (7+7+3)/3.0; math.Abs(got-want) > 1e-9 {
		t.Errorf("%v steps of single trees, want %v", got, want)
	}
	if got, want := s.steps(2, false), (9+9+3)/3.0; math.Abs(got-want) > 1e-9 {
		t.Errorf("%v steps of trees in pairs, want %v", got, want)
	}
	if got := s.steps(1, true); got != 11 {
		t.Errorf("%v steps of padded trees, want 11", got)
	}
	if got := Survey(f, nil, 16).steps(1, false); got != 11 {
		t.Errorf("%v steps without rows, want 11", got)
	}
}

// TestCost: what is more work costs more, on every machine, and every point costs something.
func TestCost(t *testing.T) {
	for _, path := range []string{"avx512", "avx2", "generic"} {
		m := MachineOf(path)
		if m.Name != path {
			t.Fatalf("%s is %s", path, m.Name)
		}
		small, large := hundred(4), hundred(8)
		wide := *large
		wide.Wide = true
		for _, p := range Space(large, 4096) {
			c := m.Cost(large, &p, 4096, 1)
			if !(c > 0) || math.IsInf(c, 0) || m.Cost(small, &p, 4096, 1) >= c || m.Cost(large, &p, 4096, 2) >= c || m.Cost(&wide, &p, 4096, 1) <= c {
				t.Fatalf("%s: %+v costs %v, small %v, two threads %v, float64 %v", path, p, c, m.Cost(small, &p, 4096, 1), m.Cost(large, &p, 4096, 2), m.Cost(&wide, &p, 4096, 1))
			}
		}
		for _, s := range Rank(large, m, Space(large, 1), 1, 1)[:1] {
			if _, err := s.Nest(); err != nil {
				t.Error(err)
			}
		}
	}
	if spread(256, 256, 2) != 1 || spread(512, 256, 2) != 0.5 || spread(768, 256, 2) != 512.0/768 || spread(1, 64, 4) != 1 {
		t.Error("spread is wrong")
	}
}
