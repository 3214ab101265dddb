package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	lower "github.com/pce-engine/pce/compile/forest"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/kernels/cpu/sliced"
	reference "github.com/pce-engine/pce/kernels/sliced"
	"github.com/pce-engine/pce/run"
)

// Bound of differences of raw scores from those in a file, for a score of 1 and less, and
// relative beyond. XGBoost's must be equal: it adds in one order.
const scoreBound = 1e-5

// forestCheck is the output of check for a forest.
type forestCheck struct {
	Rows     int          `json:"rows"`
	Trees    int          `json:"trees"`
	Expected *scoreCheck  `json:"expected,omitempty"`
	Paths    []scoreCheck `json:"paths"`
	OK       bool         `json:"ok"`
}

// scoreCheck compares raw scores, and leaves, with those of the plain evaluator.
type scoreCheck struct {
	Path       string  `json:"path"`             // sliced, row, interpreter, code, or expected
	Device     string  `json:"device,omitempty"` // of code on a card
	KernelPath string  `json:"kernel_path,omitempty"`
	Schedule   string  `json:"schedule,omitempty"` // of code: its file, or default
	MaxError   float64 `json:"max_error"`          // of a raw score; of those beyond their bound, if there are some
	Row        int     `json:"row"`                // the first that differs most, counted from 1
	Leaves     int     `json:"leaves"`             // how many leaves differ
	Bound      float64 `json:"bound"`              // for that row
	OK         bool    `json:"ok"`

	beyond bool // whether Row is beyond its bound
}

// compare looks at one score. A NaN is equal to a NaN.
func (c *scoreCheck) compare(row int, got, want, bound float64) {
	if math.Float64bits(got) == math.Float64bits(want) || got != got && want != want {
		return
	}
	d := math.Abs(got - want)
	beyond := !(d <= bound) || bound == 0
	c.OK = c.OK && !beyond
	if math.IsNaN(d) || math.IsInf(d, 0) { // JSON has neither
		d = math.MaxFloat64
	}
	if c.Row == 0 || beyond && !c.beyond || beyond == c.beyond && d > c.MaxError {
		c.MaxError, c.Row, c.Bound, c.beyond = d, row+1, bound, beyond
	}
}

// forestPath is a path that is compared.
type forestPath struct {
	scoreCheck
	sums   func(rows []float64, sums []float64)
	leaves func(rows []float64, out []float64) // nil where the path has none
	within float64                             // how far a score may be
	err    error                               // of either
}

// forestPaths returns every path that a forest can take on this machine but the plain one:
// none where it is not a sum of trees.
func forestPaths(f *forest.Forest) ([]*forestPath, error) {
	module, err := lower.Lower(f)
	if errors.Is(err, lower.ErrLower) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	start := make([]float64, f.Outputs)
	f.Start(start)
	plain, err := reference.New(module)
	if err != nil {
		return nil, err
	}
	paths := []*forestPath{{
		scoreCheck: scoreCheck{Path: "interpreter", OK: true},
		sums: func(rows, sums []float64) {
			f.Start(sums)
			plain.Sums(rows, sums)
		},
		leaves: plain.Leaves,
	}}
	for _, l := range sliced.All() {
		p, err := sliced.New(module, l)
		if err != nil {
			return nil, err
		}
		block := &forestPath{scoreCheck: scoreCheck{Path: "sliced", KernelPath: l.Name, OK: true}}
		row := &forestPath{scoreCheck: scoreCheck{Path: "row", KernelPath: l.Name, OK: true}}
		if f.Input == forest.Float32 {
			block.sums = func(rows, sums []float64) { sliced.Sums(p, narrow(rows), start, sums) }
			block.leaves = func(rows, out []float64) { sliced.Leaves(p, narrow(rows), out) }
			row.sums = func(rows, sums []float64) {
				cells := narrow(rows)
				for r := range len(rows) / f.Features {
					sliced.Sums(p, cells[r*f.Features:(r+1)*f.Features], start, sums[r*f.Outputs:(r+1)*f.Outputs])
				}
			}
			paths = append(paths, block, row)
			continue
		}
		block.sums = func(rows, sums []float64) { sliced.Sums(p, rows, start, sums) }
		block.leaves = func(rows, out []float64) { sliced.Leaves(p, rows, out) }
		paths = append(paths, block)
	}
	return paths, nil
}

// narrow returns cells, which float32 holds exactly, in float32.
func narrow(rows []float64) []float32 {
	out := make([]float32, len(rows))
	for i, x := range rows {
		out[i] = float32(x)
	}
	return out
}

// runForestCheck is check for a forest.
func (a *app) runForestCheck(ctx context.Context, f *queryFlags, schedules []string, profile, expected string, asJSON bool) error {
	if err := f.path.forest(f.model); err != nil {
		return err
	}
	if err := f.run.check(); err != nil {
		return err
	}
	r, err := a.checkForest(ctx, f, schedules, profile, expected)
	if err != nil {
		return err
	}
	if asJSON {
		err = a.printJSON(r)
	} else {
		err = a.printForestCheck(r)
	}
	if err == nil && !r.OK {
		err = fmt.Errorf("%w: %s: a path differs", errCheck, f.model)
	}
	return err
}

// checkForest compares the paths of a forest with the plain evaluator, whose raw scores and
// leaves they must equal to the bit, and the plain evaluator with the raw scores in a file.
func (a *app) checkForest(ctx context.Context, f *queryFlags, schedules []string, profile, expected string) (*forestCheck, error) {
	if len(f.data) == 0 {
		return nil, usagef("no --data; give the rows to ask about")
	}
	fo, err := run.OpenForest(f.model)
	if err != nil {
		return nil, err
	}
	if err := checkRows(fo); err != nil {
		return nil, fmt.Errorf("%s: %w", f.model, err)
	}
	paths, err := forestPaths(fo)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.model, err)
	}
	coded, free, err := codePaths(ctx, fo, f.run, schedules, profile)
	defer free()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.model, err)
	}
	paths = append(paths, coded...)
	r := &forestCheck{Trees: len(fo.Trees), Paths: []scoreCheck{}, OK: true}
	var all []float64 // scores
	err = a.eachNumbers(ctx, &f.config, f.data, fo, dataset.ToFloat32, reference.BlockRows, func(rows []float64) error {
		n := len(rows) / fo.Features
		want, got := make([]float64, n*fo.Outputs), make([]float64, n*fo.Outputs)
		if err := forest.Evaluate(fo, forest.Margin, rows, want); err != nil {
			return err
		}
		leaves, others := make([]float64, n*len(fo.Trees)), make([]float64, n*len(fo.Trees))
		if fo.Linear == nil {
			if err := forest.Evaluate(fo, forest.Leaves, rows, leaves); err != nil {
				return err
			}
		}
		for _, p := range paths {
			if p.sums(rows, got); p.err != nil {
				return p.err
			}
			fo.Finish(forest.Margin, got, got)
			for i := range got {
				p.compare(r.Rows+i/fo.Outputs, got[i], want[i], p.within)
			}
			if p.leaves == nil {
				continue
			}
			if p.leaves(rows, others); p.err != nil {
				return p.err
			}
			for i := range leaves {
				if others[i] != leaves[i] {
					p.Leaves++
					p.OK = false
				}
			}
		}
		r.Rows += n
		if expected != "" {
			all = append(all, want...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if expected != "" {
		if r.Expected, err = compareScores(ctx, expected, fo, all); err != nil {
			return nil, err
		}
		r.OK = r.Expected.OK
	}
	for _, p := range paths {
		r.Paths = append(r.Paths, p.scoreCheck)
		r.OK = r.OK && p.OK
	}
	return r, nil
}

// compareScores compares raw scores with the numbers in a file, a line for each row.
func compareScores(ctx context.Context, path string, f *forest.Forest, scores []float64) (*scoreCheck, error) {
	r, err := openText(ctx, path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	c := &scoreCheck{Path: "expected", OK: true}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<26)
	n := 0
	for ; lines.Scan(); n++ {
		words := strings.Split(lines.Text(), ",")
		if len(words) != f.Outputs {
			return nil, ended(ctx, path, fmt.Errorf("%w: %s, line %d has %d numbers; want the %d raw scores of a row", dataset.ErrFormat, path, n+1, len(words), f.Outputs))
		}
		for o, word := range words {
			x, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
			if err != nil {
				return nil, ended(ctx, path, fmt.Errorf("%w: %s, line %d: %.40q is not a number", dataset.ErrFormat, path, n+1, word))
			}
			if at := n*f.Outputs + o; at < len(scores) {
				if f.Sum == forest.Float32 {
					x = float64(float32(x)) // files have as many digits as tell float32 numbers apart
				}
				bound := scoreBound * math.Max(1, math.Abs(x))
				if strings.HasPrefix(f.Source, "xgboost") {
					bound = 0
				}
				c.compare(n, scores[at], x, bound)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, ended(ctx, path, fmt.Errorf("%w: %s, line %d: %w", dataset.ErrFormat, path, n+1, err))
	}
	if n*f.Outputs != len(scores) {
		return nil, fmt.Errorf("%w: %s has %s for %s", dataset.ErrFormat, path, several(n, "line"), several(len(scores)/f.Outputs, "row"))
	}
	return c, nil
}

// printForestCheck writes a line for each path.
func (a *app) printForestCheck(r *forestCheck) error {
	all := r.Paths
	if r.Expected != nil {
		all = append([]scoreCheck{*r.Expected}, all...)
	}
	if _, err := fmt.Fprintf(a.stdout, "%s, %s, beside the plain evaluator\n", several(r.Rows, "row"), several(r.Trees, "tree")); err != nil {
		return err
	}
	for _, c := range all {
		verdict := "equal"
		switch {
		case !c.OK:
			verdict = fmt.Sprintf("DIFFERS by %.3g in row %d, in %s", c.MaxError, c.Row, leaves(c.Leaves))
		case c.Row > 0:
			verdict = fmt.Sprintf("within %.3g", c.MaxError)
		}
		if _, err := fmt.Fprintf(a.stdout, "%-11s %-11s %s%s\n", c.Path, c.KernelPath, verdict, orEmpty(c.Schedule)); err != nil {
			return err
		}
	}
	return nil
}
