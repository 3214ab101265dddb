package em

import (
	"encoding/json"
	"math"
)

// Metrics describe an epoch. In JSON a log-likelihood that is absent or
// infinite is null.
type Metrics struct {
	Epoch            int     // epochs done
	Step             int64   // steps done
	TrainLL          float64 // running mean: over the rows of the epoch, each before the step that it was part of moved the parameters
	ValidLL          float64 // mean over the validation rows after the epoch; NaN without any
	StepSize         float64 // of the epoch's last step; 1 where counts replace the parameters, NaN if unknown
	Seconds          float64 // spent in the epoch's steps
	SamplesPerSecond float64
}

// Progress describes a step that was done. Options.OnStep gets it after the parameters have
// moved.
type Progress struct {
	Epoch, Epochs int // the step's, of all
	Step, Steps   int // the step's within its epoch, of the epoch's
	Rows          int
	LL            float64 // running mean: over the rows of the epoch so far, each before its step
}

type metricsLine struct {
	Epoch            int      `json:"epoch"`
	Step             int64    `json:"step"`
	TrainLL          *float64 `json:"train_ll"`
	ValidLL          *float64 `json:"valid_ll"`
	StepSize         *float64 `json:"step_size"`
	Seconds          float64  `json:"seconds"`
	SamplesPerSecond float64  `json:"samples_per_second"`
}

// MarshalJSON writes one object of the keys epoch, step, train_ll, valid_ll,
// step_size, seconds and samples_per_second.
func (m Metrics) MarshalJSON() ([]byte, error) {
	return json.Marshal(metricsLine{m.Epoch, m.Step, finite(m.TrainLL), finite(m.ValidLL), finite(m.StepSize), m.Seconds, m.SamplesPerSecond})
}

func finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}
