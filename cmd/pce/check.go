package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/compile/spn"
	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/run"
)

// errCheck means that a path is further from the reference than its bound.
var errCheck = errors.New("pce: check failed")

// Bounds of differences in nats: of the reference from values that were computed elsewhere, for log-likelihoods up to expectedLarge, and
// of the tensor path in float32 from the reference, for those up to 1. Both grow with larger ones.
const (
	expectedBound = 1e-9
	expectedLarge = 1000
	tensorBound   = 1e-5
)

// The least log-likelihoods that paths promise: below that of tensors the exponents of values end, and below that of hardware its format
// of numbers. A row is -Inf there.
const (
	tensorLeast = -1e9
	rtlLeast    = -1022 * math.Ln2
)

// checkResult is the output of check.
type checkResult struct {
	Rows     int         `json:"rows"`
	MeanLL   *float64    `json:"mean_ll"` // of the reference; null where a row is impossible
	Expected *pathCheck  `json:"expected,omitempty"`
	Paths    []pathCheck `json:"paths"`
	OK       bool        `json:"ok"`
}

// pathCheck compares log-likelihoods with those of the reference.
type pathCheck struct {
	Path       string  `json:"path"` // tensor, code, or expected
	Device     string  `json:"device,omitempty"`
	KernelPath string  `json:"kernel_path,omitempty"`
	MaxError   float64 `json:"max_error"` // nats; of the rows beyond their bound, if there are some
	Row        int     `json:"row"`       // the one that has it, counted from 1
	Bound      float64 `json:"bound"`     // for that row
	Recomputed int64   `json:"recomputed_rows,omitempty"`
	Below      int     `json:"below_least,omitempty"` // rows that are -Inf, as they are below what the path has
	// Of hardware: results that differ from the operators in Go, and cycles from the first row
	// in to the last result out.
	DifferentBits *int `json:"different_bits,omitempty"`
	Cycles        int  `json:"cycles,omitempty"`
	OK            bool `json:"ok"` // every row is within its bound

	beyond bool    // whether Row is beyond its bound
	least  float64 // below which rows may be -Inf; 0: nowhere
}

// compare looks at one row.
func (c *pathCheck) compare(row int, got, want, bound float64) {
	if got == want && math.IsInf(got, 0) {
		return
	}
	if c.least != 0 && want < c.least && math.IsInf(got, -1) { // and want is not
		c.Below++
		return
	}
	d := math.Abs(got - want)
	beyond := !(d <= bound) || math.IsInf(d, 0) // the bound is infinite where want is
	c.OK = c.OK && !beyond
	if math.IsNaN(d) || math.IsInf(d, 0) { // JSON has neither
		d = math.MaxFloat64
	}
	bound = min(bound, math.MaxFloat64)
	if c.Row == 0 || beyond && !c.beyond || beyond == c.beyond && d > c.MaxError { // large errors have large bounds
		c.MaxError, c.Row, c.Bound, c.beyond = d, row+1, bound, beyond
	}
}

// checkCommand makes the command pce check. The report is printed first, also that of a model
// that fails; only then a path beyond its bound ends the command with errCheck, so that scripts
// see both.
func (a *app) checkCommand() *cobra.Command {
	var f queryFlags
	var expected, target, simulator, profile string
	var schedules []string
	var asJSON bool
	var hw rtlFlags
	c := &cobra.Command{
		Use:   "check MODEL --data FILE",
		Short: "Compare the paths that a model can run on with float64 evaluation, row by row",
		Long: `Compare the paths that a model can run on with float64 evaluation, row by row.

Every row is evaluated by recursion in float64 with all digits of the file, on the path of
code and on the tensor path, as far as the model's leaves allow. A path must be within its
bound of the evaluation, but for rows below what it has, -1e9 nats of tensors and 2^-1022 of
hardware: these are -Inf there, and counted. With --expected, the evaluation must be within
1e-9 nats of the numbers in a file; those beyond 1,000 nats must agree in twelve digits.

The raw scores and leaves of a decision forest are compared with those of the plain
evaluator, which every path must equal to the bit: the interpreter of sliced forests,
blocks and single rows with each set of loops of this machine, and code with each set of
instructions, or on --device, under the default schedule and those of --schedule. Scores under
a schedule with a reduction have a bound in place of equality. With --expected, the raw
scores must be those in a file: equal for XGBoost, within 1e-5 for other libraries.

With --target rtl the model's hardware is simulated, by Verilator or Icarus Verilog. Every bit
must be that of its operators computed in Go, one row per cycle.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.model = args[0]
			if err := hw.only(cmd, target); err != nil {
				return err
			}
			is, err := run.TellForest(f.model)
			if err != nil {
				return err
			}
			if !is && (len(schedules) > 0 || profile != "") {
				return usagef("--schedule and --profile are for decision forests")
			}
			if is {
				if target != "" {
					return usagef("--target of a decision forest; hardware is made of circuits alone")
				}
				return a.runForestCheck(cmd.Context(), &f, schedules, profile, expected, asJSON)
			}
			r, err := a.checkTarget(cmd, &f, &hw, target, simulator, expected)
			if err != nil {
				return err
			}
			if asJSON {
				err = a.printJSON(r)
			} else {
				err = a.printCheck(r)
			}
			if err == nil && !r.OK {
				err = fmt.Errorf("%w: %s: a path is beyond its bound", errCheck, f.model)
			}
			return err
		},
	}
	flags := c.Flags()
	flags.StringArrayVar(&f.config.files, "config", nil, "config file whose data section says how rows are read; repeatable")
	flags.StringArrayVar(&f.config.set, "set", nil, "key=value, such as data.header=no; repeatable")
	f.run.register(flags)
	f.path.register(flags)
	f.registerData(flags)
	flags.StringVar(&expected, "expected", "", "file of log-likelihoods, or of a forest's raw scores, a line for each row, gzip or not")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object")
	flags.StringArrayVar(&schedules, "schedule", nil, "of a forest: check code under this schedule too, a file or "+configs.PresetPrefix+"NAME; repeatable")
	flags.StringVar(&profile, "profile", "", "for --schedule: how many rows visit each node, as pce forest profile writes it")
	flags.StringVar(&target, "target", "", "rtl: simulate the model's hardware")
	hw.register(flags)
	flags.StringVar(&simulator, "simulator", "", "for --target rtl: verilator or iverilog; the first one that is installed")
	hw.names = append(hw.names, "simulator")
	return c
}

// checkTarget checks hardware or the paths of programs.
func (a *app) checkTarget(cmd *cobra.Command, f *queryFlags, hw *rtlFlags, target, simulator, expected string) (*checkResult, error) {
	switch target {
	case "":
		return a.check(cmd.Context(), f, expected)
	case targetRTL:
		for _, name := range []string{"path", "type", "space", "max-error", "error", "device", "threads"} {
			if cmd.Flags().Changed(name) {
				return nil, usagef("--%s is not for --target rtl", name)
			}
		}
		return a.checkRTL(cmd.Context(), f, hw, simulator, expected)
	}
	return nil, usagef("--target %s: want rtl, or leave it out", target)
}

// referenceOf returns the evaluator in float64 of the circuit that was read from a file.
func referenceOf(file string, m *format.Model) (*reference.Evaluator, error) {
	g, read := circuit.Reached(m.Graph, m.Params64)
	params, err := reference.Load64(g, read)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	ev, err := reference.New(g, params)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return ev, nil
}

// check evaluates every row of the flags by recursion in float64, which is what a model means,
// and on each path that it can run on, and records the largest error of each path. Rows are
// read in batches, but their log-likelihoods are all kept, for the mean and for --expected. An
// error means that the comparison could not be made; a path that is beyond its bound is a
// result, with OK false. Histograms over values that training binned are refused, as the
// recursion reads categories there.
func (a *app) check(ctx context.Context, f *queryFlags, expected string) (*checkResult, error) {
	how, err := f.path.how()
	if err != nil {
		return nil, err
	}
	m, schema, err := run.OpenCircuit(f.model)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if m.Unchecked {
		noteUnchecked(a.stderr, f.model)
	}
	if err := codesOnly(schema); err != nil {
		return nil, err
	}
	ev, err := referenceOf(f.model, m)
	if err != nil {
		return nil, err
	}
	paths, err := a.openPaths(ctx, f, how)
	defer func() {
		for _, p := range paths {
			p.close()
		}
	}()
	if err != nil {
		return nil, err
	}
	var r *checkResult
	var want []float64 // of all rows
	scales := logScales(m.Graph, schema)
	err = a.eachRows(ctx, f, f.groups(), schema, func(_ string, _ int64, b *dataset.Batch) error {
		ll, err := evaluateRows(ctx, ev, scales, b)
		if err != nil {
			return err
		}
		for _, p := range paths {
			got := make([]float64, b.Rows)
			if err := engine.EvaluateBatch(ctx, p.runner, b, got); err != nil {
				return err
			}
			for i := range got {
				p.compare(len(want)+i, got[i], ll[i], p.bound(ll[i]))
			}
		}
		want = append(want, ll...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	r = newCheck(want)
	if expected != "" {
		if r.Expected, err = a.compareExpected(ctx, expected, want); err != nil {
			return nil, err
		}
		r.OK = r.Expected.OK
	}
	for _, p := range paths {
		if c, ok := p.runner.(*engine.Code); ok {
			p.Recomputed = c.Recomputed()
		}
		r.Paths = append(r.Paths, p.pathCheck)
		r.OK = r.OK && p.OK
	}
	return r, nil
}

// codesOnly refuses histograms over values that training binned: float64 evaluation reads codes.
func codesOnly(s *dataset.Schema) error {
	for i := range s.Columns {
		if s.Columns[i].Edges != nil {
			return usagef("%s is a histogram over values that were binned in training, which float64 evaluation does not read; check another model", s.ColumnName(i))
		}
	}
	return nil
}

// newCheck is a result without paths for log-likelihoods of the reference.
func newCheck(want []float64) *checkResult {
	r := &checkResult{OK: true, Rows: len(want)}
	sum := 0.0
	for _, x := range want {
		sum += x
	}
	if mean := sum / float64(len(want)); !math.IsInf(mean, 0) && mean == mean {
		r.MeanLL = &mean
	}
	return r
}

// checkedPath is a path that is compared.
type checkedPath struct {
	pathCheck
	plan   *run.Blueprint
	runner engine.Runner
	bound  func(ll float64) float64
}

func (p *checkedPath) close() {
	p.runner.Close()
	p.plan.Close()
}

// openPaths opens a model for every path that it can run on, or for the one that was chosen. Of
// its own accord it leaves out a path that the model's leaves do not allow; if that path was
// asked for by name, it is an error. The caller closes what is returned, also beside an error.
func (a *app) openPaths(ctx context.Context, f *queryFlags, how run.How) (paths []*checkedPath, err error) {
	for _, by := range []run.Path{run.PathCode, run.PathTensor} {
		if how.Path != run.PathAuto && how.Path != by {
			continue
		}
		one := run.How{Path: by}
		if by == run.PathCode || how.Path == by {
			one.Numbers = how.Numbers
		}
		plan, err := run.OpenModelFor(one, f.model, compile.Options{})
		if how.Path == run.PathAuto && one.Numbers == (spn.Choice{}) && (errors.Is(err, run.ErrOptions) || errors.Is(err, spn.ErrCode)) {
			continue // the model's leaves do not allow it
		}
		if err != nil {
			return paths, err
		}
		runner, err := plan.Runner(ctx, run.QueryLoad(runOptions(f.run.device, f.run.threads)))
		if err != nil {
			plan.Close()
			return paths, err
		}
		device := runner.Info().Device
		p := &checkedPath{pathCheck{Path: string(by), Device: device.Name, KernelPath: device.KernelPath, OK: true, least: tensorLeast}, plan, runner,
			func(ll float64) float64 { return tensorBound * math.Max(1, math.Abs(ll)) }}
		if plan.Code != nil {
			p.bound, p.least = plan.Code.Bound.Of, 0
		}
		paths = append(paths, p)
	}
	return paths, nil
}

// eachRows calls do with the rows of groups of paths of a command, in order, in batches as large as
// rowsAtOnce says: the paths of the group, the number of the batch's first row there, from 1, and the batch.
// This is reused: do copies what it keeps. The first error, of reading or of do, ends it; no path
// at all is a usage error.
func (a *app) eachRows(ctx context.Context, f *queryFlags, groups [][]string, s *dataset.Schema, do func(paths string, first int64, b *dataset.Batch) error) error {
	if len(f.data) == 0 {
		return usagef("no --data; give the rows to ask about")
	}
	b := &dataset.Batch{}
	for _, group := range groups {
		r, err := a.reader(ctx, f, s, group)
		if err != nil {
			return err
		}
		for first := int64(1); err == nil; first += int64(b.Rows) {
			if err = r.Read(ctx, b, rowsAtOnce(s)); err == nil {
				err = do(strings.Join(group, ", "), first, b)
			}
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		if err := errors.Join(err, r.Close()); err != nil {
			return err
		}
	}
	return nil
}

// evaluateRows evaluates rows by the reference, on all cores. scales are those of logScales.
func evaluateRows(ctx context.Context, ev *reference.Evaluator, scales []float64, b *dataset.Batch) ([]float64, error) {
	rows, ll := reference.Rows(b), make([]float64, b.Rows)
	parts := min(runtime.GOMAXPROCS(0), b.Rows)
	errs := make([]error, parts)
	var wait sync.WaitGroup
	for k := range parts {
		wait.Go(func() {
			for i := k; i < b.Rows && errs[k] == nil && ctx.Err() == nil; i += parts {
				ll[i], errs[k] = ev.LogLikelihood(rows[i])
				ll[i] -= logScale(scales, rows[i])
			}
		})
	}
	wait.Wait()
	return ll, errors.Join(errors.Join(errs...), ctx.Err())
}

// logScales are the log scales of the columns, 0 of those that the root does not read: likelihoods do not depend on their numbers.
func logScales(g *circuit.Graph, s *dataset.Schema) []float64 {
	scales := make([]float64, len(s.Columns))
	for v, codes := range circuit.RootDomains(g) {
		if codes >= 0 {
			scales[v] = s.Columns[v].LogScale()
		}
	}
	return scales
}

// logScale is the sum of the log scales of a row's observed cells.
func logScale(scales, row []float64) (sum float64) {
	for v, x := range row {
		if x == x {
			sum += scales[v]
		}
	}
	return sum
}

// text is a file that is unpacked where it is gzip.
type text struct {
	io.Reader
	file io.Closer
}

// Close closes the file. The reader that unpacks it holds nothing of its own.
func (t text) Close() error { return t.file.Close() }

func openText(ctx context.Context, path string) (*text, error) {
	f, err := dataset.OpenPath(ctx, path)
	if err != nil {
		return nil, ended(ctx, path, err)
	}
	b := bufio.NewReader(f)
	if head, _ := b.Peek(2); string(head) != "\x1f\x8b" {
		return &text{b, f}, nil
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		f.Close()
		return nil, ended(ctx, path, fmt.Errorf("%w: %s: %w", dataset.ErrFormat, path, err))
	}
	return &text{z, f}, nil
}

// ended is the error of opening or reading a file, or that of a context that has ended: a read of a pipe that ended with it looks
// like damage of the file, and so does the half of a line that had come.
func ended(ctx context.Context, path string, err error) error {
	if why := ctx.Err(); why != nil {
		return fmt.Errorf("%s: %w", path, why)
	}
	return err
}

// compareExpected compares what the recursion computed, want, with the numbers in a file: one
// per line and row, in the order of the rows. A line that is not a number, or a count of lines
// other than that of the rows, is an error that names file and line; numbers that differ are
// not an error but a result.
func (a *app) compareExpected(ctx context.Context, path string, want []float64) (*pathCheck, error) {
	r, err := openText(ctx, path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	c := &pathCheck{Path: "expected", OK: true, Bound: expectedBound}
	lines := bufio.NewScanner(r)
	n := 0
	for ; lines.Scan(); n++ {
		x, err := strconv.ParseFloat(strings.TrimSpace(lines.Text()), 64)
		if err != nil {
			return nil, ended(ctx, path, fmt.Errorf("%w: %s, line %d: %.40q is not a number", dataset.ErrFormat, path, n+1, lines.Text()))
		}
		if n < len(want) {
			bound := expectedBound
			if large := math.Abs(x) / expectedLarge; large > 1 && !math.IsInf(large, 0) {
				bound *= large
			}
			c.compare(n, want[n], x, bound)
		}
	}
	if err := lines.Err(); err != nil || ctx.Err() != nil {
		return nil, ended(ctx, path, fmt.Errorf("%w: %s: %w", dataset.ErrFormat, path, err))
	}
	if n != len(want) {
		return nil, fmt.Errorf("%w: %s has %s for %s; give a number for each", dataset.ErrFormat, path, several(n, "number"), several(len(want), "row"))
	}
	return c, nil
}

// printCheck prints a report for people: the rows, their mean log-likelihood if it is finite,
// and one line for each path with its largest error, the row of that and the bound there.
func (a *app) printCheck(r *checkResult) error {
	var b strings.Builder
	fmt.Fprintf(&b, "rows       %d\n", r.Rows)
	if r.MeanLL != nil {
		fmt.Fprintf(&b, "reference  %.9g nats per row\n", *r.MeanLL)
	}
	list := r.Paths
	if r.Expected != nil {
		list = append([]pathCheck{*r.Expected}, list...)
	}
	for _, p := range list {
		verdict := "within"
		if !p.OK {
			verdict = "BEYOND"
		}
		where := strings.TrimSpace(strings.Join([]string{p.Device, p.KernelPath}, " "))
		what := fmt.Sprintf("largest error %.3g nats (row %d), %s the bound %.3g", p.MaxError, p.Row, verdict, p.Bound)
		if p.Row == 0 {
			what = "no row is finite here, so none has an error"
		}
		fmt.Fprintf(&b, "%-10s %s%s\n", p.Path, what, orEmpty(where))
		if p.Below > 0 {
			fmt.Fprintf(&b, "%-10s left out: %s below %.4g nats, -Inf on this path\n", "", several(p.Below, "row"), p.least)
		}
		if p.DifferentBits != nil {
			fmt.Fprintf(&b, "%-10s %d of %s differ from the operators in Go; %s\n", "", *p.DifferentBits, several(r.Rows, "result"), several(p.Cycles, "cycle"))
		}
	}
	_, err := io.WriteString(a.stdout, b.String())
	return err
}

func orEmpty(where string) string {
	if where == "" {
		return ""
	}
	return "; " + where
}
