package pce

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	lower "github.com/pce-engine/pce/compile/forest"
	"github.com/pce-engine/pce/compile/forest/schedule"
	"github.com/pce-engine/pce/compile/forest/tune"
	"github.com/pce-engine/pce/forest"
)

// TuneOptions say how TuneForest searches.
type TuneOptions struct {
	// Batch is how many rows calls will have; 0: 4096.
	Batch int
	// Represent allows only these representations of trees; none: all.
	Represent []string
	// Exhaustive times every schedule of the template, after the search has chosen one.
	Exhaustive bool
	// Budget ends the search early; 0: it takes as long as it takes.
	Budget time.Duration
}

// defaultTuneBatch is how many rows a call has if options do not say.
const defaultTuneBatch = 4096

// Tuning is a schedule that was chosen for a forest, with all that was measured.
type Tuning struct {
	tune.Result
	Path  string    `json:"kernel_path"` // the kernels that it was chosen for
	Batch int       `json:"batch"`
	When  time.Time `json:"when"`
}

// Chosen returns the schedule that the search chose, before the others were timed if it is exhaustive.
func (t *Tuning) Chosen() *tune.Point { return &t.Points[t.Choice] }

// Fastest returns the fastest schedule: of an exhaustive search of all, else the chosen one.
func (t *Tuning) Fastest() *tune.Point { return &t.Points[t.Result.Best] }

// TuneForest chooses a schedule of tune's template for a forest: by a cost model first, and then by calls with the rows
// that are given, row-major and at least one, which are repeated to make a batch. It takes as many threads as
// opts.Threads says and the kernels of opts.KernelPath. One schedule in fifty is timed, and
// one of each representation at least, unless the search is exhaustive.
func TuneForest(ctx context.Context, f *forest.Forest, rows []float64, opts Options, o TuneOptions) (*Tuning, error) {
	if o.Batch == 0 {
		o.Batch = defaultTuneBatch
	}
	if o.Budget < 0 {
		return nil, fmt.Errorf("%w: a budget of %v; want 0 or more", ErrOptions, o.Budget)
	}
	for _, how := range o.Represent {
		if !slices.Contains(tune.Representations(), how) {
			return nil, fmt.Errorf("%w: representation %.40q; want some of %s", ErrOptions, how, strings.Join(tune.Representations(), ", "))
		}
	}
	t, err := newTuner(f, rows, opts, o.Batch)
	if err != nil {
		return nil, err
	}
	defer t.m.Close()
	search := tune.Options{Batch: o.Batch, Threads: t.m.forest.threads, Exhaustive: o.Exhaustive}
	if o.Budget > 0 {
		search.Deadline = time.Now().Add(o.Budget)
	}
	machine := tune.MachineOf(t.path)
	shape := tune.Survey(f, rows, machine.Lanes)
	r, err := tune.Search(ctx, shape, machine, tune.Space(shape, o.Batch, o.Represent...), t.load, search)
	if err != nil {
		return nil, err
	}
	return &Tuning{Result: *r, Path: t.path, Batch: o.Batch, When: time.Now().UTC().Truncate(time.Second)}, nil
}

// CompareSchedules returns how much longer a call takes under a schedule than under another, as a share, by medians of
// calls in turn: 0 where they are as fast, below 0 where the first is faster.
func CompareSchedules(ctx context.Context, f *forest.Forest, rows []float64, opts Options, batch int, one, other string) (float64, error) {
	t, err := newTuner(f, rows, opts, batch)
	if err != nil {
		return 0, err
	}
	defer t.m.Close()
	var list []*schedule.Schedule
	for _, text := range []string{one, other} {
		s, err := schedule.Parse(text)
		if err != nil {
			return 0, err
		}
		list = append(list, s)
	}
	times, err := tune.InTurn(ctx, t.load, list, tune.FinalRounds)
	if err != nil || one == other {
		return 0, err
	}
	return tune.Median(times[0])/tune.Median(times[1]) - 1, nil
}

// GuessSchedule returns the schedule of tune's template that the cost model considers the fastest in calls of batch rows,
// of those that the forest has code for. None is timed.
func GuessSchedule(f *forest.Forest, opts Options, batch int) (string, error) {
	if batch < 1 {
		return "", fmt.Errorf("%w: a batch of %d rows; want at least 1", ErrOptions, batch)
	}
	m, err := NewForest(f, opts)
	if err != nil {
		return "", err
	}
	defer m.Close()
	path, err := kernelPath(opts)
	if err != nil {
		return "", err
	}
	machine := tune.MachineOf(path)
	shape := tune.Survey(f, nil, machine.Lanes)
	why := errors.New("no schedule of the template is legal")
	for _, s := range tune.Rank(shape, machine, tune.Space(shape, batch), batch, m.forest.threads) {
		c, err := lower.Compile(f, s, nil)
		if err == nil && (c.Module != nil || m.forest.sliced != nil) {
			return s.Text(), nil
		}
		if err != nil {
			why = err
		}
	}
	return "", fmt.Errorf("%w: %w", tune.ErrTune, why)
}

// tuner times schedules of a forest with a batch of rows.
type tuner struct {
	m     *Model
	path  string // of the kernels
	batch []float64
}

// newTuner fills a batch with the rows, over and over. Close the model.
func newTuner(f *forest.Forest, rows []float64, opts Options, batch int) (*tuner, error) {
	m, err := NewForest(f, opts)
	if err != nil {
		return nil, err
	}
	path, err := kernelPath(opts)
	if err != nil {
		return nil, err
	}
	if batch < 1 || batch > maxTuneCells/f.Features {
		return nil, fmt.Errorf("%w: a batch of %d rows of %d features; want 1 to %d rows", ErrOptions, batch, f.Features, maxTuneCells/f.Features)
	}
	if len(rows) == 0 || len(rows)%f.Features != 0 {
		return nil, fmt.Errorf("%w: %d cells to time with; want a row at least, of %d cells", ErrOptions, len(rows), f.Features)
	}
	t := &tuner{m: m, path: path, batch: make([]float64, batch*f.Features)}
	for at := 0; at < len(t.batch); {
		at += copy(t.batch[at:], rows)
	}
	return t, nil
}

// load makes a model under a schedule.
func (t *tuner) load(s *schedule.Schedule) (tune.Candidate, error) {
	m, err := t.m.scheduled(s, nil)
	if err != nil {
		return nil, err
	}
	return newTimed(m, t.batch, m != t.m), nil
}

// maxTuneCells bounds the cells of a batch.
const maxTuneCells = 1 << 26

// timed is a model with a batch of rows: float32 as Predict takes them, unless the forest compares float64.
type timed struct {
	m      *Model
	narrow []float32
	out    []float32
	rows   []float64
	wide   []float64
	own    bool // the model is closed with it
}

func newTimed(m *Model, rows []float64, own bool) *timed {
	f := m.Forest()
	n := len(rows) / f.Features * f.Width(forest.Prediction)
	t := &timed{m: m, own: own}
	if f.Input != forest.Float32 {
		t.rows, t.wide = rows, make([]float64, n)
		return t
	}
	t.narrow, t.out = make([]float32, len(rows)), make([]float32, n)
	for i, x := range rows {
		t.narrow[i] = float32(x)
	}
	return t
}

// Call predicts the batch.
func (t *timed) Call(ctx context.Context) (time.Duration, error) {
	begin := time.Now()
	var err error
	if t.rows != nil {
		err = t.m.Evaluate(ctx, forest.Prediction, t.rows, t.wide)
	} else {
		err = t.m.Predict(ctx, t.narrow, t.out)
	}
	return time.Since(begin), err
}

// Close frees the code of the schedule.
func (t *timed) Close() error {
	if t.own {
		return t.m.Close()
	}
	return nil
}
