package em

import (
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/tensor"
)

// DefaultShardRows are the rows of a shard unless told.
const DefaultShardRows = 512

// leastPseudocount is that of all positive ones below it: no positive weight is less.
const leastPseudocount = 0x1p-100

// Rule names how the counts of a step update the parameters.
type Rule string

// The rules of phases.
const (
	MiniBatch Rule = "minibatch-em" // θ ← (1-α)·θ + α·θ_new, θ_new from the counts of a batch
	FullBatch Rule = "fullbatch-em" // θ ← θ_new, θ_new from the counts of all rows or of a subset
	Anemone   Rule = "anemone"      // a blend of averaged counts and those that the model expects; see tensor.Anemone
)

// Phase is a run of epochs under one rule. Fields that the rule does not use are not looked at.
type Phase struct {
	Rule        Rule     `json:"rule"`
	Epochs      int      `json:"epochs"`
	BatchRows   int      `json:"batch_rows"` // MiniBatch, Anemone: most rows of a step; an epoch is cut into as few even steps as that allows
	Subsets     int      `json:"subsets"`    // FullBatch: even parts of the rows, drawn anew each epoch, updated after in turn; 0: 1
	StepSize    Schedule `json:"step_size"`  // MiniBatch, Anemone: over the steps of the phase
	Momentum    float64  `json:"momentum"`   // Anemone: share of the averaged counts that a step keeps, below 1
	Pseudocount float64  `json:"pseudocount"`
}

// Checkpoints say when the state of training is saved. Training continues once the state
// is in the file, while the disk takes it; an error of the disk is that of the next
// checkpoint, or of the run's end.
type Checkpoints struct {
	Dir      string        // created if absent; "": none are kept
	Epochs   int           // epochs between checkpoints; 0: at the end only
	Steps    int64         // also steps between checkpoints; 0: never
	Interval time.Duration // also time between checkpoints; 0: never
	Keep     int           // newest ones kept; 0: 2
}

// Options say how a circuit is trained. Phases are done one after another; the zero value of
// every other field is a default or leaves the matter out. Callbacks are called on the
// goroutine of Run, which waits for them.
type Options struct {
	Phases    []Phase
	Seed      uint64 // of the order of the rows
	ShardRows int    // rows whose counts are added as one; 0: DefaultShardRows
	Steps     int64  // end after this many; 0: as many as the epochs need

	// Valid are the rows of valid_ll, which is taken after each epoch; nil: none.
	Valid dataset.Source
	// Patience ends training after this many epochs without a better valid_ll, and
	// keeps the parameters of the best epoch however it ends; 0: it does neither, and a
	// run that is resumed forgets the best epoch of its earlier parts.
	Patience int
	// KeepStart says that the starting parameters are good ones, such as those that came with
	// a learned structure: what is saved is the best on Valid of them and of all epochs.
	KeepStart bool

	// Fingerprint is what the bits of the run depend on. Resume refuses to
	// continue from a checkpoint with another value of a fact that is not free.
	// ValidRowsFact says which rows Valid are, so that others are not taken for them.
	// nil: Facts and the number of training rows.
	Fingerprint  []Fact
	AllowChanges bool // Resume continues all the same, with the values that hold now

	Checkpoints Checkpoints
	MetricsFile string // one JSON line an epoch; "": none
	Sink        ModelSink

	OnEpoch func(Metrics)  // called after each epoch
	OnStep  func(Progress) // called after each step
	Logger  *slog.Logger   // nil: silence
}

// LaunchRows returns the rows of a launch that the engine of a Local needs for
// rows training rows: engine.Options.Rows.
func (o *Options) LaunchRows(rows int) int {
	most := 1
	for _, p := range o.Phases {
		most = max(most, min(p.StepRows(rows), o.shardRows()))
	}
	return most
}

// SpreadShards returns the most rows of a shard, DefaultShardRows or fewer, with which
// each of the workers gets a shard in every step over rows training rows. With fewer rows in a step than workers it is 1.
func (o *Options) SpreadShards(rows, workers int) int {
	n := DefaultShardRows
	for _, p := range o.Phases {
		if p.Epochs == 0 {
			continue
		}
		s := p.schedule(rows, 0)
		small, large := s.StepRows(s.Steps()-1), s.StepRows(0)
		n = min(n, (large-1)/workers+1)
		for n > 1 && (small-1)/n+1 < workers { // rounding up made too few shards
			n--
		}
	}
	return n
}

func (o *Options) shardRows() int {
	if o.ShardRows == 0 {
		return DefaultShardRows
	}
	return o.ShardRows
}

func (o *Options) epochs() int {
	n := 0
	for _, p := range o.Phases {
		n += p.Epochs
	}
	return n
}

// Validate reports options that cannot work, with an error that matches ErrOptions, before a
// run writes anything. New calls it. What depends on the rows, such as the steps of an
// epoch, is checked when training starts.
func (o *Options) Validate() error {
	if s := o.shardRows(); s < 1 || s > engine.MaxShardRows {
		return badOption("shards of %d rows; want 1 to %d", o.ShardRows, engine.MaxShardRows)
	}
	if o.Steps < 0 || o.Patience < 0 {
		return badOption("steps %d, patience %d; neither may be negative", o.Steps, o.Patience)
	}
	if o.Patience > 0 && o.Valid == nil {
		return badOption("patience of %d epochs without validation rows; give some or set patience to 0", o.Patience)
	}
	if o.KeepStart && o.Valid == nil {
		return badOption("starting parameters to be kept without validation rows; give some or set KeepStart to false")
	}
	if o.Valid != nil && o.Valid.Rows() == 0 {
		return badOption("no validation rows; give at least one or leave them out")
	}
	if c := o.Checkpoints; c.Epochs < 0 || c.Steps < 0 || c.Interval < 0 || c.Keep < 0 {
		return badOption("checkpoints every %d epochs, %d steps, %v, %d kept; none may be negative", c.Epochs, c.Steps, c.Interval, c.Keep)
	}
	total := 0
	for i := range o.Phases {
		p := &o.Phases[i]
		if err := p.validate(); err != nil {
			return err
		}
		if total += p.Epochs; total < 0 {
			return badOption("more epochs than an integer counts; give fewer")
		}
	}
	return nil
}

// KeepsBest reports whether what is saved is the best on Valid, so that these rows decide.
func (o *Options) KeepsBest() bool { return o.Patience > 0 || o.KeepStart }

// validate reports a phase that cannot work. Only what its rule uses is looked at: full-batch
// EM has neither batches nor step sizes.
func (p *Phase) validate() error {
	if p.Epochs < 0 || p.BatchRows < 0 || p.Subsets < 0 {
		return badOption("%d epochs, batches of %d rows, %d subsets; none may be negative", p.Epochs, p.BatchRows, p.Subsets)
	}
	if !(p.Pseudocount >= 0) || math.IsInf(p.Pseudocount, 0) {
		return badOption("pseudocount %v; want 0 or a positive number", p.Pseudocount)
	}
	switch p.Rule {
	case MiniBatch, Anemone:
		if p.BatchRows == 0 {
			return badOption("batches of 0 rows; give at least 1")
		}
		if p.Rule == Anemone && !(p.Momentum >= 0 && float32(p.Momentum) < 1) {
			return badOption("momentum %v; want 0 or more and below 1, where nothing new would count", p.Momentum)
		}
		return p.StepSize.validate()
	case FullBatch:
		return nil
	}
	return badOption("rule %q; write %s, %s or %s", p.Rule, MiniBatch, FullBatch, Anemone)
}

// schedule says how an epoch of the phase over rows training rows is cut into steps.
func (p *Phase) schedule(rows int, seed uint64) dataset.Schedule {
	s := dataset.Schedule{Rows: rows, BatchRows: rows, Seed: seed}
	switch {
	case p.Rule != FullBatch:
		s.BatchRows = max(1, p.BatchRows) // Validate refuses less
	case p.Subsets > 1:
		s.MinSteps = p.Subsets
	default:
		s.InOrder = true // a step over all rows has them in any order: the stored one reads fastest
	}
	return s
}

// StepRows returns the most rows of a step of the phase over rows training rows.
func (p *Phase) StepRows(rows int) int {
	return p.schedule(max(1, rows), 0).StepRows(0)
}

// Steps returns the number of steps of the phase over rows training rows.
func (p *Phase) Steps(rows int) int64 {
	s := p.schedule(max(1, rows), 0)
	return int64(p.Epochs) * int64(s.Steps())
}

// RuleAt returns how the parameters move in a step of the phase, counted from 0, of
// steps steps. Weight is that of the averages of Anemone before it, 0 for the first
// step; the rows of the flows are filled in by who has them.
func (p *Phase) RuleAt(step, steps int64, weight float64) tensor.Rule {
	r := tensor.Rule{Step: 1, Pseudocount: p.Pseudocount}
	if r.Pseudocount > 0 { // devices divide by it as float32 where a unit has no counts
		r.Pseudocount = max(r.Pseudocount, leastPseudocount)
	}
	if p.Rule != FullBatch {
		r.Step = p.StepSize.At(step, steps)
	}
	if p.Rule == Anemone {
		r.Anemone = &tensor.Anemone{Momentum: p.Momentum, Weight: weight}
	}
	return r
}

// averages reports whether a phase keeps averaged counts.
func (o *Options) averages() bool {
	return slices.ContainsFunc(o.Phases, func(p Phase) bool { return p.Rule == Anemone && p.Epochs > 0 })
}

// plan returns the steps of phase i over rows training rows, from a place on.
func (o *Options) plan(i, rows, last int, st *state) Plan {
	return Plan{
		Schedule: o.Phases[i].schedule(rows, o.Seed), ShardRows: o.shardRows(), Epochs: last, Start: st.At, Done: st.Steps,
	}
}
