package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/cuda/tensor/plan"
	"github.com/pce-engine/pce/kernels/device"
	"github.com/pce-engine/pce/layers"
	"github.com/pce-engine/pce/run"
)

// prediction is what bench says of a card that need not be there. Nothing in it is
// measured.
type prediction struct {
	Card         string      `json:"card"`
	Batch        int         `json:"batch"` // rows of the step: of a launch, where the batch that was asked for has more
	asked        int         // rows of a batch
	SumEdges     int64       `json:"sum_edges"`
	Kernels      []plan.Cost `json:"kernels"`
	Step         plan.Cost   `json:"step"`
	CopyBytes    int64       `json:"copy_bytes"` // of the rows, to the card
	CopySeconds  float64     `json:"copy_seconds"`
	FloorPer1k   float64     `json:"floor_seconds_per_1k"`
	ExpectPer1k  float64     `json:"expected_seconds_per_1k"`
	DeviceMemory int64       `json:"device_memory_bytes"`
}

// predict models a training step of a config on a card, kernel by kernel. Nothing runs, and
// the card need not be there; a card whose rates are not known is a usage error that lists the
// known ones.
func (a *app) predict(ctx context.Context, f *benchFlags) (*prediction, error) {
	rates, ok := plan.RatesOf(f.card)
	if !ok {
		return nil, usagef("--predict-card %s: want %s", f.card, strings.Join(plan.Cards(), " or "))
	}
	cfg, err := a.loadDataConfig(&f.config)
	if err != nil {
		return nil, err
	}
	if err := onlyEM(&cfg.Train); err != nil {
		return nil, err
	}
	if em.Rule(cfg.Train.Rule) == em.Anemone { // its kernels, and what it keeps, are others
		return nil, usagef("train.rule is anemone, and --predict-card models steps of EM alone; choose minibatch-em")
	}
	b, err := a.blueprint(ctx, cfg, run.How{Path: run.PathTensor})
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if err := f.setBatch(cfg, b); err != nil {
		return nil, err
	}
	rows := min(shardRowsHere(&cfg.Train), cfg.Train.BatchSize, engine.MaxShardRows)
	m := layers.Module{Program: b.Program, Rows: rows, Train: true, Mixed: cfg.Precision == "mixed"}
	p := &prediction{Card: rates.Name, Batch: rows, asked: cfg.Train.BatchSize, SumEdges: circuit.Count(b.Graph).SumEdges}
	if p.Kernels, p.Step, err = plan.Predict(m, rows, rates); err != nil {
		return nil, err
	}
	card, err := device.Find("cuda") // which need not be there
	if err != nil {
		return nil, err
	}
	memory, err := card.Plan(m, device.Options{})
	if err != nil {
		return nil, err
	}
	p.DeviceMemory = 4*b.Program.NumParams + memory.Values + memory.Flows + memory.Scratch + memory.Program
	if p.asked > rows { // the launches add their flows to integers
		p.DeviceMemory += 8 * b.Program.FlowLen()
	}
	// The rows of a step are copied while the card works on the step before.
	p.CopyBytes, p.CopySeconds = m.CellBytes(), float64(m.CellBytes())/rates.Host
	p.FloorPer1k = max(p.Step.Floor, p.CopySeconds) * 1000 / float64(rows)
	p.ExpectPer1k = max(p.Step.Expected, p.CopySeconds) * 1000 / float64(rows)
	return p, nil
}

// printPrediction prints a prediction as a table of kernels, the step last, and says that
// nothing in it is measured.
func (a *app) printPrediction(p *prediction) error {
	var s strings.Builder
	fmt.Fprintf(&s, "a training step of %s on %s; a model, nothing is measured\n", several(p.Batch, "row"), p.Card)
	if p.asked > p.Batch {
		fmt.Fprintf(&s, "a batch of %d rows takes several such, as a launch has at most %d; the times for 1000 samples hold for it too\n", p.asked, p.Batch)
	}
	w := tabwriter.NewWriter(&s, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "kernel\tlaunches\tGFLOP\tMB\tfloor us\tissue\ttensor\tmemory\tcache\tshared\tlatency\tgaps\texpected us\tbound by\t")
	for _, c := range append(p.Kernels, p.Step) {
		fmt.Fprintf(w, "%s\t%d\t%.3g\t%.4g\t%.4g\t", c.Kernel, c.Launches, c.Flop/1e9, c.Bytes/1e6, 1e6*c.Floor)
		for _, x := range []float64{c.Terms.Issue, c.Terms.Tensor, c.Terms.Memory, c.Terms.Cache, c.Terms.Shared, c.Terms.Latency, c.Terms.Gaps} {
			fmt.Fprintf(w, "%.3g\t", 1e6*x)
		}
		fmt.Fprintf(w, "%.4g\t%s\t\n", 1e6*c.Expected, c.Bound)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(&s, "host: %.4g us of a step, until it has read the log-likelihoods and launched the next one\n", 1e6*p.Step.Terms.Host)
	fmt.Fprintf(&s, "rows: %.4g MB to the card in %.4g us, while it works on the step before\n", float64(p.CopyBytes)/1e6, 1e6*p.CopySeconds)
	fmt.Fprintf(&s, "floor %.4g s, expected %.4g s per 1000 samples; %d MiB on the card\n", p.FloorPer1k, p.ExpectPer1k, p.DeviceMemory>>20)
	_, err := fmt.Fprint(a.stdout, s.String())
	return err
}
