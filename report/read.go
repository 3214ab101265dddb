package report

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/run"
)

// Run is what the directory of a run says. Parts that are missing are nil.
type Run struct {
	Name      string
	Epochs    []Epoch
	Result    *Result
	Objective string // what the curves are of, of a discriminative run; Read takes it from the result, which may be older
	Config    string // the text of config.yaml
	Info      *run.Info
	Samples   *Samples
	Missing   []string // a line for each part that is not there, and why
}

// Epoch is a line of metrics.jsonl. A log-likelihood that is unknown or infinite is nil.
type Epoch struct {
	Epoch            int      `json:"epoch"`
	Step             int64    `json:"step"`
	TrainLL          *float64 `json:"train_ll"`
	ValidLL          *float64 `json:"valid_ll"`
	StepSize         *float64 `json:"step_size"`
	Seconds          float64  `json:"seconds"`
	SamplesPerSecond float64  `json:"samples_per_second"`
}

// Result is result.json as run.Result writes it. Figures that the run does not have are nil.
type Result struct {
	TrainLL        *float64    `json:"train_ll"`
	ValidLL        *float64    `json:"valid_ll"`
	TestLL         *float64    `json:"test_ll"`
	TestBPD        *float64    `json:"test_bpd"`
	TestPerplexity *float64    `json:"test_perplexity"`
	Objective      string      `json:"objective"` // what log-likelihoods are of, of a discriminative run
	BestEpoch      int         `json:"best_epoch"`
	Warnings       []string    `json:"warnings"`
	CompileSeconds float64     `json:"compile_seconds"`
	TrainSeconds   float64     `json:"train_seconds"`
	PerSecond      float64     `json:"samples_per_second"`
	Device         string      `json:"device"`
	Precision      string      `json:"precision_used"`
	Epochs         int         `json:"epochs"`
	Steps          int64       `json:"steps"`
	Recomputed     int64       `json:"recomputed_tiles"`
	Version        run.Version `json:"version"`
}

// Before reports whether the run in dir has more epochs than it had when the result was written, or more steps, where train.steps had
// ended it within an epoch: it was resumed, and has not come to its end since. Within its next epoch only a checkpoint tells.
func (r *Result) Before(dir string, epochs []Epoch) bool {
	steps := run.SavedSteps(dir)
	if len(epochs) > 0 {
		last := &epochs[len(epochs)-1]
		if last.Epoch > r.Epochs {
			return true
		}
		steps = max(steps, last.Step)
	}
	return steps > r.Steps && (r.Steps > 0 || r.Epochs == 0) // results of earlier versions do not say how many there were
}

// Limits on what is read of a file, so that a wrong one does no harm.
const (
	maxText   = 4 << 20 // bytes of a config, a result, a line of metrics
	maxEpochs = 1 << 20
)

// ErrNoRun means that a directory has nothing of a run.
var ErrNoRun = errors.New("report: not a run")

// ErrNoCurve means that a run has no epoch that can be drawn.
var ErrNoCurve = errors.New("report: no curve")

// ErrNoEpoch is the error about a file of metrics without a line, as a run has it in its first epoch.
var ErrNoEpoch = errors.New("it has no epoch (yet)")

// Read reads the run in dir. on says where the model is opened, to describe it and to
// draw samples of a run that has no picture of them.
func Read(ctx context.Context, dir string, on pce.Options) (*Run, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	r := &Run{Name: filepath.Base(path)}
	found := false
	var closed error // why it is unknown whether a file is there, as in a folder of another user
	for _, name := range []string{run.ModelFile, run.MetricsFile, run.ConfigFile, run.ResultFile} {
		_, err := os.Stat(filepath.Join(dir, name))
		found = found || err == nil
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			closed = err
		}
	}
	if !found && closed != nil {
		return nil, fmt.Errorf("report: %w; give the directory of a run that can be read", closed)
	}
	if !found {
		return nil, fmt.Errorf("%w: %s has no %s, %s, %s or %s; give the directory of a run", ErrNoRun, dir,
			run.ModelFile, run.MetricsFile, run.ConfigFile, run.ResultFile)
	}
	r.note("The settings", run.ConfigFile, r.readConfig(filepath.Join(dir, run.ConfigFile)))
	r.Epochs, err = ReadEpochs(filepath.Join(dir, run.MetricsFile))
	r.note("The curves", run.MetricsFile, err)
	r.Result, err = ReadResult(filepath.Join(dir, run.ResultFile))
	r.note("The results", run.ResultFile, err)
	if r.Result != nil {
		r.Objective = r.Result.Objective
	}
	if r.Result != nil && r.Result.Before(dir, r.Epochs) {
		r.Missing = append(r.Missing, fmt.Sprintf("The results and the model are those after %s: the run was resumed, and is not done.", plural(int64(r.Result.Epochs), "epoch")))
	}
	r.readModel(ctx, dir, on)
	return r, ctx.Err()
}

// note adds a part that could not be read to Missing.
func (r *Run) note(part, file string, err error) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.Missing = append(r.Missing, fmt.Sprintf("%s: the run has no %s (yet).", part, file))
	case err != nil:
		r.Missing = append(r.Missing, fmt.Sprintf("%s: %s: %v.", part, file, err))
	}
}

// readText reads a small file.
func readText(path string) ([]byte, error) { return readBounded(path, maxText) }

// readBounded reads a file of up to most bytes. Its size does not say how many a device has.
func readBounded(path string, most int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(text) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	return text, err
}

func (r *Run) readConfig(path string) error {
	text, err := readText(path)
	if err == nil {
		r.Config = string(text)
	}
	return err
}

// ReadResult reads a result.json.
func ReadResult(path string) (*Result, error) {
	text, err := readText(path)
	if err != nil {
		return nil, err
	}
	res := new(Result)
	if err := json.Unmarshal(text, res); err != nil {
		return nil, err
	}
	return res, nil
}

// ReadEpochs reads the lines of a metrics.jsonl. The last line of a run that is being
// written, or was killed, may be cut: the epochs before it come with the error.
func ReadEpochs(path string) (epochs []Epoch, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxText)
	for n := 1; lines.Scan(); n++ {
		var e Epoch
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			if n == 1 {
				return nil, fmt.Errorf("line 1: %w", err)
			}
			return epochs, fmt.Errorf("line %d: %w; the lines before it are shown", n, err)
		}
		if n > maxEpochs {
			return epochs, fmt.Errorf("it has more than %d lines; the first ones are shown", maxEpochs)
		}
		epochs = append(epochs, e)
	}
	if err := lines.Err(); err != nil {
		return epochs, err
	}
	if len(epochs) == 0 {
		return nil, ErrNoEpoch
	}
	return epochs, nil
}

// readModel describes the model, and finds or draws samples.
func (r *Run) readModel(ctx context.Context, dir string, on pce.Options) {
	path := filepath.Join(dir, run.ModelFile)
	err := r.readInfo(path, on)
	r.note("Layers and memory", run.ModelFile, err)
	picture := r.readPicture(filepath.Join(dir, run.SamplesFile))
	if picture == nil || err != nil {
		r.note("The samples", run.SamplesFile, picture)
		return
	}
	if !errors.Is(picture, fs.ErrNotExist) {
		r.note("The picture of samples", run.SamplesFile, picture)
	}
	r.note("The samples", run.ModelFile, r.draw(ctx, path, on))
}

func (r *Run) readInfo(path string, on pce.Options) error {
	// The layers are those of training, also where queries take code, which has none.
	b, err := run.OpenModelFor(run.How{Path: run.PathTensor}, path, compile.Options{})
	if err != nil {
		return err
	}
	defer b.Close()
	info, err := b.Info(run.QueryLoad(on))
	if err == nil {
		r.Info = info
	}
	return err
}
