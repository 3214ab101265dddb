package em_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/kernels/tensor"
)

// recording notes the rule of each step.
type recording struct {
	em.FlowSource
	rules []tensor.Rule
}

func (r *recording) Step(ctx context.Context, rule tensor.Rule) (em.StepResult, error) {
	r.rules = append(r.rules, rule)
	return r.FlowSource.Step(ctx, rule)
}

// TestRuleAt: the steps of a phase and their rules are those that a trainer asks of
// its FlowSource.
func TestRuleAt(t *testing.T) {
	g := structured(t)["hclt"]
	m := newModel(t, g, clustered(g, 7, 50, 0.1))
	sizes := em.Schedule{{Shape: em.Constant, Length: 1, From: 0.8, To: 0.8}, {Shape: em.Linear, Length: 3, From: 0.6, To: 0.1}}
	for _, phase := range []em.Phase{
		{Rule: em.MiniBatch, Epochs: 2, BatchRows: 16, StepSize: sizes, Pseudocount: 0.3},
		{Rule: em.FullBatch, Epochs: 2, Pseudocount: 0.2},
		{Rule: em.FullBatch, Epochs: 2, Subsets: 3},
		{Rule: em.Anemone, Epochs: 2, BatchRows: 16, StepSize: sizes, Momentum: 0.75, Pseudocount: 0.1},
	} {
		local := em.NewLocal(m.engine(t, cpu.Options{}, 64), m.table)
		rec := &recording{FlowSource: local}
		tr, err := em.New(rec, em.Options{Phases: []em.Phase{phase}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = tr.Run(t.Context())
		local.Close()
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(rec.rules)) != phase.Steps(50) {
			t.Fatalf("%s: %d steps, Steps says %d", phase.Rule, len(rec.rules), phase.Steps(50))
		}
		weight := 0.0
		for i, got := range rec.rules {
			if a := got.Anemone; a != nil {
				if float32(a.Weight) != float32(weight) {
					t.Errorf("%s, step %d: the averages have weight %v, want %v", phase.Rule, i, a.Weight, weight)
				}
				weight = a.Weight
			}
			if want := phase.RuleAt(int64(i), phase.Steps(50), weight); !reflect.DeepEqual(got, want) {
				t.Errorf("%s, step %d: the rule is %+v, RuleAt says %+v", phase.Rule, i, got, want)
			}
			if a := got.Anemone; a != nil {
				weight = a.Next()
			}
		}
	}
	none := em.Phase{Rule: em.FullBatch}
	if none.Steps(50) != 0 || none.RuleAt(0, none.Steps(50), 0).Step != 1 {
		t.Errorf("a phase of no epochs has %d steps", none.Steps(50))
	}
	for count, want := range map[float64]float64{0: 0, 1e-300: 0x1p-100, 0.3: 0.3} { // none is none: what no row comes to is left alone
		if got := (&em.Phase{Rule: em.FullBatch, Pseudocount: count}).RuleAt(0, 1, 0).Pseudocount; got != want {
			t.Errorf("a pseudocount of %v becomes %v, want %v", count, got, want)
		}
	}
}
