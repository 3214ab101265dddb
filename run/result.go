package run

import (
	"encoding/json"
	"math"

	"github.com/pce-engine/pce/dataset"
)

// Result is what training came to. Log-likelihoods are means over rows in nats
// under the parameters that were saved, NaN where no such rows were given; those of a
// discriminative run are of its objective.
type Result struct {
	Nodes, Edges, Parameters int64
	Variables                int
	Unit                     dataset.Unit // of tokens; "" for other data
	TestBPD, TestPerplexity  *Measure     // of the test rows; nil: the rows have none, see Measures
	TrainLL, ValidLL, TestLL float64
	Objective                string   // what these are the means of in place of log-likelihoods, in words; "" unless the run was discriminative
	Class                    string   // the name of its class then, or the number of the column
	BestEpoch                int      // the epoch whose parameters were saved, counted from 1; 0: none, they are the starting ones
	Warnings                 []string // what makes these log-likelihoods doubtful; see the function Warnings
	StructureSeconds         float64  // spent in building the structure, or in learning it; 0 for a model from a file
	CompileSeconds           float64
	TrainSeconds             float64 // spent in steps, over all parts of a resumed run
	SamplesPerSecond         float64
	Epochs                   int
	Steps                    int64
	Device                   string
	PrecisionUsed            string // mixed or fp32
	// Recomputed is how many rows of vectors were recomputed in log space since
	// this part of the run began.
	Recomputed int64
	Out        string
	Version    Version
}

// resultJSON is a Result in JSON. Numbers that are unknown or infinite are null.
type resultJSON struct {
	Nodes            int64    `json:"nodes"`
	Edges            int64    `json:"edges"`
	Parameters       int64    `json:"parameters"`
	TrainLL          *float64 `json:"train_ll"`
	ValidLL          *float64 `json:"valid_ll"`
	TestLL           *float64 `json:"test_ll"`
	Objective        string   `json:"objective,omitempty"`
	TestBPD          *Measure `json:"test_bpd,omitempty"`
	TestPerplexity   *Measure `json:"test_perplexity,omitempty"`
	BestEpoch        int      `json:"best_epoch"`
	Warnings         []string `json:"warnings,omitempty"`
	StructureSeconds float64  `json:"structure_seconds"`
	CompileSeconds   float64  `json:"compile_seconds"`
	TrainSeconds     float64  `json:"train_seconds"`
	SamplesPerSecond float64  `json:"samples_per_second"`
	Device           string   `json:"device"`
	PrecisionUsed    string   `json:"precision_used"`
	Steps            int64    `json:"steps"`
	Epochs           int      `json:"epochs"`
	Recomputed       int64    `json:"recomputed_tiles"`
	Out              string   `json:"out"`
	Version          Version  `json:"version"`
}

// MarshalJSON writes one object, the line that pce train --json ends with. It is a method of the value, too: a Result within
// another struct would else be written field by field, and JSON has no number for a log-likelihood that is NaN.
func (r Result) MarshalJSON() ([]byte, error) {
	j := resultJSON{
		Nodes: r.Nodes, Edges: r.Edges, Parameters: r.Parameters,
		TrainLL: Finite(r.TrainLL), ValidLL: Finite(r.ValidLL), TestLL: Finite(r.TestLL), Objective: r.Objective,
		TestBPD: r.TestBPD, TestPerplexity: r.TestPerplexity,
		BestEpoch: r.BestEpoch, Warnings: r.Warnings,
		StructureSeconds: r.StructureSeconds, CompileSeconds: r.CompileSeconds, TrainSeconds: r.TrainSeconds, SamplesPerSecond: r.SamplesPerSecond,
		Device: r.Device, PrecisionUsed: r.PrecisionUsed, Steps: r.Steps, Epochs: r.Epochs, Recomputed: r.Recomputed, Out: r.Out,
		Version: r.Version,
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON writes, as result.json has it. Log-likelihoods that are null, infinite or of rows that
// were not given, become NaN. Variables, Unit and Class are not in it.
func (r *Result) UnmarshalJSON(text []byte) error {
	var j resultJSON
	if err := json.Unmarshal(text, &j); err != nil {
		return err
	}
	known := func(x *float64) float64 {
		if x == nil {
			return math.NaN()
		}
		return *x
	}
	*r = Result{
		Nodes: j.Nodes, Edges: j.Edges, Parameters: j.Parameters,
		TrainLL: known(j.TrainLL), ValidLL: known(j.ValidLL), TestLL: known(j.TestLL), Objective: j.Objective,
		TestBPD: j.TestBPD, TestPerplexity: j.TestPerplexity,
		BestEpoch: j.BestEpoch, Warnings: j.Warnings,
		StructureSeconds: j.StructureSeconds, CompileSeconds: j.CompileSeconds, TrainSeconds: j.TrainSeconds, SamplesPerSecond: j.SamplesPerSecond,
		Device: j.Device, PrecisionUsed: j.PrecisionUsed, Steps: j.Steps, Epochs: j.Epochs, Recomputed: j.Recomputed, Out: j.Out,
		Version: j.Version,
	}
	return nil
}

// Finite returns x, nil where JSON has no number for it.
func Finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}
