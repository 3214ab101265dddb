package em

import (
	"errors"
	"math"
	"testing"
)

func TestScheduleAt(t *testing.T) {
	two := Schedule{{Linear, 1, 1, 0.5}, {Constant, 3, 0.1, 0.7}}
	for _, tc := range []struct {
		name        string
		s           Schedule
		step, steps int64
		want        float64
	}{
		{"constant", Schedule{{Constant, 1, 0.3, 0.9}}, 7, 10, 0.3},
		{"linear start", Schedule{{Linear, 2, 0.9, 0.1}}, 0, 9, 0.9},
		{"linear middle", Schedule{{Linear, 2, 0.9, 0.1}}, 4, 9, 0.5},
		{"linear end", Schedule{{Linear, 2, 0.9, 0.1}}, 8, 9, 0.1},
		{"one step", Schedule{{Linear, 2, 0.9, 0.1}}, 0, 1, 0.9},
		{"second piece's start", Schedule{{Constant, 1, 1, 1}, {Linear, 1, 0.8, 0.2}}, 4, 8, 0.8},
		{"second piece's middle", Schedule{{Constant, 1, 1, 1}, {Linear, 1, 0.8, 0.2}}, 5, 8, 0.6},
		{"second piece's end", Schedule{{Constant, 1, 1, 1}, {Linear, 1, 0.8, 0.2}}, 7, 8, 0.2},
		{"cosine start", Schedule{{Cosine, 1, 0.8, 0.2}}, 0, 5, 0.8},
		{"cosine quarter", Schedule{{Cosine, 1, 0.8, 0.2}}, 1, 5, 0.2 + 0.6*(1+math.Sqrt2/2)/2},
		{"cosine end", Schedule{{Cosine, 1, 0.8, 0.2}}, 4, 5, 0.2},
		{"first piece ends", two, 9, 40, 0.5},
		{"second piece starts", two, 10, 40, 0.1},
		{"second piece ends", two, 39, 40, 0.1},
		{"fewer steps than pieces", two, 0, 1, 0.1}, // the first gets round(1/4) steps
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.s.At(tc.step, tc.steps); !(math.Abs(got-tc.want) <= 1e-15) {
				t.Errorf("At(%d, %d) = %v, want %v", tc.step, tc.steps, got, tc.want)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	ok := func() Options {
		return Options{Phases: []Phase{{Rule: MiniBatch, Epochs: 1, BatchRows: 4, StepSize: Schedule{{Constant, 1, 0.5, 0.5}}}}}
	}
	for _, tc := range []struct {
		name string
		edit func(*Options)
		want error
	}{
		{"valid", func(*Options) {}, nil},
		{"full batch", func(o *Options) { o.Phases[0] = Phase{Rule: FullBatch, Epochs: 1} }, nil},
		{"no phases", func(o *Options) { o.Phases = nil }, nil},
		{"no rule", func(o *Options) { o.Phases[0].Rule = "" }, ErrOptions},
		{"unknown rule", func(o *Options) { o.Phases[0].Rule = "adam" }, ErrOptions},
		{"anemone", func(o *Options) { o.Phases[0].Rule, o.Phases[0].Momentum = Anemone, 0.9 }, nil},
		{"no momentum", func(o *Options) { o.Phases[0].Rule = Anemone }, nil},
		{"momentum 1", func(o *Options) { o.Phases[0].Rule, o.Phases[0].Momentum = Anemone, 1 }, ErrOptions},
		{"negative momentum", func(o *Options) { o.Phases[0].Rule, o.Phases[0].Momentum = Anemone, -0.1 }, ErrOptions},
		{"NaN momentum", func(o *Options) { o.Phases[0].Rule, o.Phases[0].Momentum = Anemone, math.NaN() }, ErrOptions},
		{"anemone without batch", func(o *Options) { o.Phases[0].Rule, o.Phases[0].BatchRows = Anemone, 0 }, ErrOptions},
		{"no batch", func(o *Options) { o.Phases[0].BatchRows = 0 }, ErrOptions},
		{"negative batch", func(o *Options) { o.Phases[0].BatchRows = -1 }, ErrOptions},
		{"negative epochs", func(o *Options) { o.Phases[0].Epochs = -1 }, ErrOptions},
		{"epochs overflow", func(o *Options) {
			o.Phases[0].Epochs = math.MaxInt
			o.Phases = append(o.Phases, o.Phases[0])
		}, ErrOptions},
		{"negative subsets", func(o *Options) { o.Phases[0].Subsets = -1 }, ErrOptions},
		{"negative pseudocount", func(o *Options) { o.Phases[0].Pseudocount = -1 }, ErrOptions},
		{"NaN pseudocount", func(o *Options) { o.Phases[0].Pseudocount = math.NaN() }, ErrOptions},
		{"infinite pseudocount", func(o *Options) { o.Phases[0].Pseudocount = math.Inf(1) }, ErrOptions},
		{"no step size", func(o *Options) { o.Phases[0].StepSize = nil }, ErrOptions},
		{"shape", func(o *Options) { o.Phases[0].StepSize[0].Shape = "square" }, ErrOptions},
		{"step size above 1", func(o *Options) { o.Phases[0].StepSize[0].From = 1.1 }, ErrOptions},
		{"NaN step size", func(o *Options) { o.Phases[0].StepSize[0].To = math.NaN() }, ErrOptions},
		{"piece without length", func(o *Options) { o.Phases[0].StepSize[0].Length = 0 }, ErrOptions},
		{"infinite piece", func(o *Options) { o.Phases[0].StepSize[0].Length = math.Inf(1) }, ErrOptions},
		{"negative patience", func(o *Options) { o.Patience = -1 }, ErrOptions},
		{"the largest shards", func(o *Options) { o.ShardRows = 2048 }, nil},
		{"the smallest shards", func(o *Options) { o.ShardRows = 1 }, nil},
		{"shards too large", func(o *Options) { o.ShardRows = 2049 }, ErrOptions},
		{"negative shards", func(o *Options) { o.ShardRows = -1 }, ErrOptions},
		{"negative steps", func(o *Options) { o.Steps = -1 }, ErrOptions},
		{"patience without rows", func(o *Options) { o.Patience = 1 }, ErrOptions},
		{"negative interval", func(o *Options) { o.Checkpoints.Interval = -1 }, ErrOptions},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := ok()
			tc.edit(&o)
			if got := o.Validate(); !errors.Is(got, tc.want) {
				t.Errorf("Validate() = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestLaunchRows(t *testing.T) {
	for _, tc := range []struct {
		name       string
		o          Options
		rows, want int
	}{
		{"batch below a shard", Options{Phases: []Phase{{Rule: MiniBatch, BatchRows: 100}}}, 1000, 100},
		{"batch above", Options{Phases: []Phase{{Rule: MiniBatch, BatchRows: 1000}}}, 1000, 512},
		{"even steps", Options{Phases: []Phase{{Rule: MiniBatch, BatchRows: 100}}}, 101, 51},
		{"no batch", Options{Phases: []Phase{{Rule: MiniBatch}}}, 100, 1}, // Validate refuses it
		{"no rows", Options{Phases: []Phase{{Rule: MiniBatch, BatchRows: 100}, {Rule: FullBatch, Subsets: 3}}}, 0, 1},
		{"few rows", Options{Phases: []Phase{{Rule: MiniBatch, BatchRows: 1000}}}, 30, 30},
		{"full batch", Options{Phases: []Phase{{Rule: MiniBatch, BatchRows: 10}, {Rule: FullBatch}}, ShardRows: 64}, 1000, 64},
		{"subsets", Options{Phases: []Phase{{Rule: FullBatch, Subsets: 20}}}, 1000, 50},
		{"uneven subsets", Options{Phases: []Phase{{Rule: FullBatch, Subsets: 6}}}, 10, 2},
		{"more subsets than rows", Options{Phases: []Phase{{Rule: FullBatch, Subsets: 60}}}, 10, 1},
	} {
		if got := tc.o.LaunchRows(tc.rows); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

// TestSpreadShards wants a shard for each worker in every step that has the rows
// for it, and as few shards as that allows.
func TestSpreadShards(t *testing.T) {
	for _, phase := range []Phase{
		{Rule: MiniBatch, Epochs: 1, BatchRows: 1}, {Rule: MiniBatch, Epochs: 1, BatchRows: 10}, {Rule: MiniBatch, Epochs: 1, BatchRows: 512},
		{Rule: MiniBatch, Epochs: 1, BatchRows: 5000}, {Rule: FullBatch, Epochs: 1}, {Rule: FullBatch, Epochs: 1, Subsets: 7},
	} {
		for _, rows := range []int{1, 2, 9, 10, 11, 511, 512, 513, 1025, 3001, 17412} {
			s := phase.schedule(rows, 0)
			small, large := s.StepRows(s.Steps()-1), s.StepRows(0)
			for workers := 1; workers <= 9; workers++ {
				o := Options{Phases: []Phase{{Rule: FullBatch}, phase}} // the first has no epochs
				n := o.SpreadShards(rows, workers)
				if n < 1 || n > DefaultShardRows {
					t.Fatalf("%+v, %d rows, %d workers: shards of %d rows", phase, rows, workers, n)
				}
				enough := func(n int) bool {
					return (small+n-1)/n >= min(workers, small) && (large+n-1)/n >= min(workers, large)
				}
				if !enough(n) {
					t.Errorf("%+v, %d rows, %d workers: shards of %d rows are too few in steps of %d to %d", phase, rows, workers, n, small, large)
				}
				for more := n + 1; more <= DefaultShardRows; more++ {
					if (large+more-1)/more < (large+n-1)/n && enough(more) {
						t.Errorf("%+v, %d rows, %d workers: shards of %d rows, and %d would do", phase, rows, workers, n, more)
						break
					}
				}
			}
		}
	}
	o := Options{Phases: []Phase{{Rule: MiniBatch, Epochs: 1, BatchRows: 64}, {Rule: FullBatch, Epochs: 1}}}
	if n := o.SpreadShards(6400, 4); n != 16 {
		t.Errorf("batches of 64 rows for 4 workers have shards of %d rows, want 16", n)
	}
}
