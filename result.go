package pce

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/internal/atomicfile"
)

// ResultFile, in the directory of a run, has the Result of the model beside it. It
// is written when all else is, and removed before another model replaces it.
const ResultFile = "result.json"

// Result is what training came to. Log-likelihoods are means over rows in nats
// under the parameters that were saved, NaN where there are no such rows.
type Result struct {
	Nodes, Edges, Parameters int64
	Variables                int
	Unit                     dataset.Unit // of tokens; "" for other data
	TrainLL, ValidLL, TestLL float64
	BestEpoch                int      // the epoch whose parameters were saved, counted from 1; 0: none, they are the starting ones
	Warnings                 []string // what makes these log-likelihoods doubtful; see the function Warnings
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
	TestBPD          *float64 `json:"test_bpd"`
	TestPerplexity   *float64 `json:"test_perplexity,omitempty"`
	BestEpoch        int      `json:"best_epoch"`
	Warnings         []string `json:"warnings,omitempty"`
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

// MarshalJSON writes one object, the line that pce train --json ends with.
func (r *Result) MarshalJSON() ([]byte, error) {
	j := resultJSON{
		Nodes: r.Nodes, Edges: r.Edges, Parameters: r.Parameters,
		TrainLL: finite(r.TrainLL), ValidLL: finite(r.ValidLL), TestLL: finite(r.TestLL),
		TestBPD:   finite(BitsPerDimension(r.TestLL, r.Variables)),
		BestEpoch: r.BestEpoch, Warnings: r.Warnings,
		CompileSeconds: r.CompileSeconds, TrainSeconds: r.TrainSeconds, SamplesPerSecond: r.SamplesPerSecond,
		Device: r.Device, PrecisionUsed: r.PrecisionUsed, Steps: r.Steps, Epochs: r.Epochs, Recomputed: r.Recomputed, Out: r.Out,
		Version: r.Version,
	}
	if r.Unit != "" {
		j.TestPerplexity = finite(Perplexity(r.TestLL, r.Variables))
	}
	return json.Marshal(j)
}

// finite returns x, nil where JSON has no number for it.
func finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

func (r *run) writeResult(res *Result) error {
	return atomicfile.Write(r.path(ResultFile), 0o644, func(w io.Writer) error { return json.NewEncoder(w).Encode(res) })
}

// removeResult removes the result of the model that is about to be replaced.
func (r *run) removeResult() error {
	if err := os.Remove(r.path(ResultFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("pce: %w", err)
	}
	return nil
}

// modulePath is this module's, as the Go toolchain records it.
const modulePath = "github.com/pce-engine/pce"

// Version is what the Go toolchain recorded about this build of the module.
type Version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the program's sources, where the program is of this module
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// ReadVersion returns the version of the module in this program.
func ReadVersion() Version {
	v := Version{Version: "(devel)", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	own := &info.Main
	for _, m := range info.Deps {
		if m.Path == modulePath {
			own = m
		}
	}
	if own.Version != "" {
		v.Version = own.Version
	}
	if own != &info.Main {
		return v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// String is one line.
func (v Version) String() string {
	s := fmt.Sprintf("pce %s %s %s/%s", v.Version, v.Go, v.OS, v.Arch)
	if v.Revision != "" {
		s += " " + v.Revision
	}
	if v.Modified {
		s += " modified"
	}
	return s
}
