package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda/tensor/plan"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
	"github.com/pce-engine/pce/run"
)

// Floating-point operations of a sum edge and a sample: a multiplication and
// an addition forward, and for each of the two products backward.
const (
	trainFlops   = 6
	forwardFlops = 2
)

// benchFlags say what is measured and how long.
type benchFlags struct {
	config      configFlags
	run         deviceFlags
	path        pathFlag
	model, data string
	batch       int
	warmup      int
	steps       int
	least       time.Duration
	card        string
	kernels     bool
}

// benchResult is the output of bench; times are medians over the steps.
type benchResult struct {
	SecondsPer1k   float64 `json:"seconds_per_1k_samples"`
	Samples        int     `json:"samples"`
	GFLOPS         float64 `json:"gflops"`
	FloorPer1k     float64 `json:"floor_seconds_per_1k"`
	Fraction       float64 `json:"fraction_of_floor"`
	RowsPerSecond  float64 `json:"rows_per_second,omitempty"` // of inference
	Device         string  `json:"device"`
	KernelPath     string  `json:"kernel_path"`
	Recomputed     int64   `json:"recomputed_tiles"` // of code: rows
	PrecisionUsed  string  `json:"precision_used"`
	Threads        int     `json:"threads"`
	Batch          int     `json:"batch"`
	Steps          int     `json:"steps"`
	SumEdges       int64   `json:"sum_edges"`
	PeakGFLOPS     float64 `json:"peak_gflops"`
	FastestPer1k   float64 `json:"fastest_seconds_per_1k"`
	CompileSeconds float64 `json:"compile_seconds"`

	// Of devices that tell.
	PhasesPer1k  map[string]float64 `json:"phase_seconds_per_1k,omitempty"`
	DeviceBytes  int64              `json:"device_memory_bytes,omitempty"`
	Instructions map[string]int64   `json:"instructions,omitempty"` // executed since the start, by kind
	codeKernels                     // of code, with --kernels
	Kernels      []kernelTime       `json:"kernel_seconds_per_step,omitempty"`

	ofCode bool
}

// kernelTime is what the launches of a kernel take in a step, by events around each.
type kernelTime struct {
	Kernel   string  `json:"kernel"`
	Phase    string  `json:"phase"`
	Launches int     `json:"launches"`
	Seconds  float64 `json:"seconds"`
	Expected float64 `json:"expected_seconds,omitempty"` // by the model, of cards that it knows
	Bound    string  `json:"bound,omitempty"`            // the model's largest term
}

// benchCommand makes the command pce bench, which measures (bench) or, with --predict-card,
// models (predict) and prints text or one JSON object.
func (a *app) benchCommand() *cobra.Command {
	var f benchFlags
	var code scheduleFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "bench --config FILE | --model MODEL --data FILE",
		Short: "Measure training steps of a config, log-likelihoods of a model, or predictions of a forest",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if f.card != "" {
				if err := onlyPredicts(cmd); err != nil {
					return err
				}
				p, err := a.predict(cmd.Context(), &f)
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(p)
				}
				return a.printPrediction(p)
			}
			if is, err := f.isForest(); err != nil {
				return err
			} else if is {
				r, err := a.benchForest(cmd.Context(), &f, &code)
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(r)
				}
				return a.printForestBench(r)
			}
			if code != (scheduleFlags{}) {
				return usagef("--schedule and --profile are for decision forests")
			}
			r, err := a.bench(cmd.Context(), &f, cmd.Flags().Changed)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(r)
			}
			return a.printBench(r)
		},
	}
	f.config.register(c.Flags())
	f.run.register(c.Flags())
	f.path.register(c.Flags())
	code.register(c.Flags())
	c.Flags().StringVar(&f.model, "model", "", "measure log-likelihoods of this model, or predictions of this forest")
	c.Flags().StringVar(&f.data, "data", "", "rows to measure the model on")
	c.Flags().IntVar(&f.batch, "batch", 0, "rows of a step; 0: train.batch_size, under fullbatch-em as training has them, 4096 of a forest")
	c.Flags().IntVar(&f.warmup, "warmup", 2, "steps before the clock starts")
	c.Flags().IntVar(&f.steps, "steps", 0, "steps to measure; 0: as many as --time takes, at least 5")
	c.Flags().DurationVar(&f.least, "time", 3*time.Second, "time to measure for, without --steps")
	c.Flags().StringVar(&f.card, "predict-card", "", "model a training step on this card instead of measuring: "+strings.Join(plan.Cards(), " or "))
	c.Flags().BoolVar(&f.kernels, "kernels", false, "on a card, time every kernel of a training step too, or all those of code")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// onlyPredicts refuses flags that say how to measure beside --predict-card, which measures nothing.
func onlyPredicts(cmd *cobra.Command) error {
	for _, name := range []string{"schedule", "profile", "device", "threads", "warmup", "steps", "time", "kernels"} {
		if cmd.Flags().Changed(name) {
			return usagef("--%s says how to measure, and --predict-card models a step and measures nothing; leave one of them out", name)
		}
	}
	return nil
}

// maxBatch is the largest train.batch_size of a config.
const maxBatch = 1 << 24

// check refuses flags that are out of range or contradict each other, before anything is read or compiled.
func (f *benchFlags) check() error {
	config := len(f.config.files) > 0
	how, err := f.path.how()
	switch {
	case err != nil:
		return err
	case f.warmup < 0 || f.steps < 0 || f.batch < 0 || f.least < 0:
		return usagef("--batch, --warmup, --steps and --time must not be negative")
	case f.batch > maxBatch:
		return usagef("--batch %d: want at most %d rows", f.batch, maxBatch)
	case f.card != "" && !config:
		return usagef("bench --predict-card wants --config FILE")
	case config == (f.model != ""):
		return usagef("bench wants --config FILE or --model MODEL --data FILE, one of them")
	case !config && f.data == "":
		return usagef("bench --model wants --data FILE, the rows to measure it on")
	case config && f.data != "":
		return usagef("bench --config has the rows of the config; leave --data out, or choose others with --set data.train=FILE")
	case config && how != (run.How{}) && how != (run.How{Path: run.PathTensor}):
		return usagef("bench --config measures training, which code does not do; leave out --path code, --type, --space, --max-error and --error")
	case f.model != "":
		return cmp.Or(f.config.ofModel(f.model), f.config.ofRows())
	}
	return nil
}

// setBatch puts the rows of a step into a config: those of --batch or, under a rule that has no batches, those of a step of training.
func (f *benchFlags) setBatch(cfg *configs.Config, b *run.Blueprint) error {
	if p := emOptions(cfg).Phases[0]; f.batch > 0 {
		cfg.Train.BatchSize = f.batch
	} else if p.Rule == em.FullBatch && f.model == "" && b.Train != nil {
		if cfg.Train.BatchSize = p.StepRows(b.Train.Rows()); cfg.Train.BatchSize > maxBatch {
			return usagef("a step of fullbatch-em has %d rows, and bench at most %d; give --batch", cfg.Train.BatchSize, maxBatch)
		}
	}
	return nil
}

// onlyEM refuses a config of discriminative training, a step of which passes its rows several times and in float32.
func onlyEM(t *configs.Train) error {
	if d := t.Discriminative; d > 0 {
		return usagef("train.discriminative is %v, and bench measures steps of EM alone; pce train says how many rows it passes", d)
	}
	return nil
}

// isForest reports whether a forest is to be measured.
func (f *benchFlags) isForest() (bool, error) {
	if f.model == "" {
		return false, nil
	}
	return run.TellForest(f.model)
}

// bench measures training steps of a config, or log-likelihoods of a model, on the device of
// the flags. The circuit starts from its usual parameters and no run is written. Where the
// device's rates are known, the result says what share of them was reached. The flags have
// passed check.
func (a *app) bench(ctx context.Context, f *benchFlags, given func(string) bool) (*benchResult, error) {
	cfg, err := a.loadDataConfig(&f.config)
	if err != nil {
		return nil, err
	}
	inference := f.model != ""
	if inference {
		cfg.Model.Structure, cfg.Model.File, cfg.Data.Train = "file", f.model, configs.Paths{f.data}
		if err := a.verify(f.model); err != nil {
			return nil, err
		}
	}
	if !inference {
		if err := onlyEM(&cfg.Train); err != nil {
			return nil, err
		}
		if err := cfg.Data.RequireTraining(); err != nil { // a circuit of a file is made without rows
			return nil, err
		}
	}
	if err := f.run.override(cfg, given); err != nil {
		return nil, err
	}
	how := run.How{Path: run.PathTensor} // code is not trained
	if inference {
		if how, err = f.path.howOn(cfg.Device); err != nil {
			return nil, err
		}
	}
	var b *run.Blueprint
	if inference {
		s := structureOf(cfg)
		s.How = how
		b, err = run.Build(ctx, s, a.asked(&cfg.Data), compileOptions(&cfg.Compile))
	} else {
		b, err = a.blueprint(ctx, cfg, how)
	}
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if b.Code != nil {
		if err := f.config.ofCode(f.model); err != nil {
			return nil, err
		}
	}
	if err := f.setBatch(cfg, b); err != nil {
		return nil, err
	}
	load, err := benchLoad(cfg, b, inference)
	if err != nil {
		return nil, err
	}
	if b.Code != nil {
		return benchCode(ctx, b, cfg, f, load)
	}
	if f.kernels && inference {
		return nil, usagef("--kernels times training steps and code, and %s is measured on the tensor path; leave it out", f.model)
	}
	e, err := b.Engine(ctx, load)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	if f.kernels && e.Meter() == nil {
		return nil, usagef("--kernels times training steps on a card or on the emulator; %s does not tell", e.Info().Device.Name)
	}
	r, err := measure(ctx, e, b.Train, cfg, f, load)
	if err != nil {
		return nil, err
	}
	if err := r.meter(ctx, e, b.Train, cfg, f, load); err != nil {
		return nil, err
	}
	r.CompileSeconds = b.CompileTime.Seconds()
	r.judge(circuit.Count(b.Graph).SumEdges, inference)
	if rates, ok := plan.RatesOf(e.Info().Device.Card); ok && !inference {
		costs, step, err := plan.Predict(layers.Module{Program: b.Program, Rows: load.Rows, Train: true, Mixed: load.Mixed}, load.Rows, rates)
		if err != nil {
			return nil, err
		}
		r.against(step.Floor * 1000 / float64(load.Rows))
		r.expect(costs)
	}
	return r, nil
}

// benchLoad says how the circuit runs: as training runs it or, where a model is measured, as queries do, which compute in float32 also
// where training does not, keep what other queries than log-likelihoods need, and take fewer rows at a time where there is less memory.
func benchLoad(cfg *configs.Config, b *run.Blueprint, inference bool) (run.Load, error) {
	o := runOptions(cfg.Device, cfg.Threads)
	o.Rows = min(shardRowsHere(&cfg.Train), cfg.Train.BatchSize, engine.MaxShardRows)
	switch {
	case b.Code != nil: // which has no room for other queries
		return run.Load{Options: o}, nil
	case inference:
		return b.PoolLoad(o)
	}
	l := run.Load{Options: o, Train: true, Mixed: cfg.Precision == "mixed", StepRows: int64(cfg.Train.BatchSize)}
	l.Averages = em.Rule(cfg.Train.Rule) == em.Anemone
	l.Shards = cfg.Train.BatchSize > l.Rows || l.Averages
	return l, nil
}

// asked returns the rows of --data as queries of a model read them: a file may lack columns, and - is standard input.
func (a *app) asked(d *configs.Data) run.Rows {
	return func(ctx context.Context, schema *dataset.Schema) (dataset.Source, error) {
		o, err := a.queryOptions(d, schema)
		if err != nil {
			return nil, err
		}
		return a.openAll(ctx, d.Train, o)
	}
}

// meter asks the device for what it measures itself, and for the phases of some more
// steps, and their kernels if these are asked for.
func (r *benchResult) meter(ctx context.Context, e *engine.Engine, src dataset.Source, cfg *configs.Config, f *benchFlags, load run.Load) error {
	m := e.Meter()
	if m == nil {
		return nil
	}
	r.DeviceBytes, r.Instructions = m.Allocated(), m.Instructions()
	defer m.Measure(kernels.MeasureNothing)
	steps := 5
	if r.Instructions != nil {
		steps = 1
	}
	timed := func(detail kernels.Detail, steps int) ([]kernels.Phase, error) {
		m.Measure(detail)
		_, err := measure(ctx, e, src, cfg, &benchFlags{steps: steps}, load)
		return m.Phases(), err
	}
	phases, err := timed(kernels.MeasurePhases, steps)
	if err != nil {
		return err
	}
	r.PhasesPer1k = map[string]float64{}
	for _, p := range phases {
		r.PhasesPer1k[p.Name] = p.Seconds * 1000 / float64(steps*r.Batch)
	}
	if !f.kernels {
		return nil
	}
	if _, err := timed(kernels.MeasureKernels, 1); err != nil { // the first step also makes the events
		return err
	}
	if phases, err = timed(kernels.MeasureKernels, steps); err != nil {
		return err
	}
	for _, p := range phases {
		r.Kernels = append(r.Kernels, kernelTime{Kernel: p.Kernel, Phase: p.Name, Launches: p.Launches / steps, Seconds: p.Seconds / float64(steps)})
	}
	return nil
}

// expect puts the model's times beside those of kernels. A kernel of several phases has
// one time in the model, which is divided by launches.
func (r *benchResult) expect(costs []plan.Cost) {
	for i := range r.Kernels {
		k := &r.Kernels[i]
		for _, c := range costs {
			if c.Kernel == k.Kernel {
				k.Expected, k.Bound = c.Expected*float64(k.Launches)/float64(c.Launches), c.Bound
			}
		}
	}
}

// measure times steps on batches that walk through the rows again and again, after f.warmup
// steps that do not count: f.steps of them, or as many as f.least takes, at least five.
// The result has the median and the fastest. The rows of the next step are gathered, and
// brought to a device that works meanwhile, while it computes, as in training; where the
// device does not, gathering is not timed.
func measure(ctx context.Context, e *engine.Engine, src dataset.Source, cfg *configs.Config, f *benchFlags, load run.Load) (*benchResult, error) {
	info := e.Info().Device
	r := &benchResult{
		Device: info.Name, KernelPath: info.KernelPath, Threads: info.Threads, Batch: cfg.Train.BatchSize,
		PrecisionUsed: e.Precision().String(),
	}
	steps := newBenchSteps(e, src, load.Train, benchRule(cfg, src.Rows()), r.Batch)
	var times []time.Duration
	var total time.Duration
	var before int64
	for n := -f.warmup; f.steps == 0 && (n < 5 || total < f.least) || n < f.steps; n++ {
		if n == 0 {
			before = e.Recomputed()
		}
		t, err := steps.next(ctx)
		if err != nil {
			return nil, err
		}
		if n >= 0 {
			times = append(times, t)
			total += t
		}
	}
	slices.Sort(times)
	r.Recomputed = e.Recomputed() - before
	r.Steps, r.Samples = len(times), len(times)*r.Batch
	r.SecondsPer1k = median(times).Seconds() * 1000 / float64(r.Batch)
	r.FastestPer1k = times[0].Seconds() * 1000 / float64(r.Batch)
	r.PeakGFLOPS = peak(r.Threads, r.KernelPath)
	return r, nil
}

// median returns the median of times in ascending order, at least one: of an even number the middle between two.
func median(times []time.Duration) time.Duration {
	n := len(times)
	return (times[(n-1)/2] + times[n/2]) / 2
}

// benchRule returns the rule of every step that is measured: that of the first step
// of a run with the config.
func benchRule(cfg *configs.Config, rows int) tensor.Rule {
	phase := emOptions(cfg).Phases[0]
	rule := phase.RuleAt(0, phase.Steps(rows), 0)
	if rule.Anemone != nil {
		rule.Anemone.Rows = cfg.Train.BatchSize
	}
	return rule
}

// judge compares the time with that of the multiplications alone.
func (r *benchResult) judge(edges int64, inference bool) {
	flops := float64(trainFlops * edges)
	if inference {
		flops = float64(forwardFlops * edges)
		r.RowsPerSecond = 1000 / r.SecondsPer1k
	}
	r.SumEdges = edges
	r.GFLOPS = flops * 1000 / r.SecondsPer1k / 1e9
	if r.PeakGFLOPS > 0 {
		r.against(flops * 1000 / (r.PeakGFLOPS * 1e9))
	}
}

// against sets the floor that the time is compared with.
func (r *benchResult) against(floor float64) {
	r.FloorPer1k, r.Fraction = floor, floor/r.SecondsPer1k
}

// recomputed says what was computed twice. Rows of code are in log space the second time, or in float64.
func (r *benchResult) recomputed() string {
	if r.ofCode {
		return plural(r.Recomputed, "row")
	}
	return plural(r.Recomputed, "tile") + " in log space"
}

// floorLine says what the floor is where there is one, which the interpreter of code and cards of unknown rates do not have. That of a
// card is not of multiplications alone.
func (r *benchResult) floorLine() string {
	switch {
	case r.FloorPer1k == 0:
		return ""
	case r.PeakGFLOPS == 0:
		return fmt.Sprintf("floor      %.4g s per 1000 samples by the rates of the card; reached %s %%\n", r.FloorPer1k, rate(100*r.Fraction))
	}
	return fmt.Sprintf("floor      %.4g s per 1000 samples at %.1f GFLOP/s; reached %s %%\n", r.FloorPer1k, r.PeakGFLOPS, rate(100*r.Fraction))
}

// threads says on how many threads a CPU computed; cards and the emulator have none of these.
func (r *benchResult) threads() string {
	if r.Threads == 0 {
		return ""
	}
	return several(r.Threads, "thread") + ", "
}

// printBench prints what was measured, for people; with --kernels a table of kernels follows.
func (a *app) printBench(r *benchResult) error {
	speed := fmt.Sprintf("%.1f", r.GFLOPS)
	if r.GFLOPS < 9.95 { // which small circuits are far below
		speed = rate(r.GFLOPS)
	}
	if _, err := fmt.Fprintf(a.stdout, `time       %.4g s per 1000 samples (median of %s of %d; fastest %.4g s)
speed      %s GFLOP/s on %s
%sdevice     %s, %s, %s%s
recomputed %s
%s`,
		r.SecondsPer1k, several(r.Steps, "step"), r.Batch, r.FastestPer1k, speed, several(r.SumEdges, "sum edge"),
		r.floorLine(), r.Device, r.KernelPath, r.threads(), r.PrecisionUsed, r.recomputed(), r.copies()); err != nil {
		return err
	}
	if len(r.Kernels) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "kernel\tphase\tlaunches\tus\texpected us\tbound by\t")
	for _, k := range r.Kernels {
		expected := "" // of a card, or a kernel, that the model does not know
		if k.Expected > 0 {
			expected = fmt.Sprintf("%.4g", 1e6*k.Expected)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%.4g\t%s\t%s\t\n", k.Kernel, k.Phase, k.Launches, 1e6*k.Seconds, expected, k.Bound)
	}
	return w.Flush()
}
