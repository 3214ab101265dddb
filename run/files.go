package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/internal/atomicfile"
)

// The files of a run in its directory.
const (
	ModelFile     = "model.safetensors"
	MetricsFile   = "metrics.jsonl"
	ConfigFile    = "config.yaml"
	CheckpointDir = "checkpoints"
	SamplesFile   = "samples.png"
	// TextSamplesFile has the samples of a run whose rows are text, a line for each.
	TextSamplesFile = "samples.txt"
	// ResultFile has the Result of the model beside it. It is written when all else
	// is, and removed, as samples are, before another model replaces it.
	ResultFile = "result.json"
)

// claim makes and locks the directory of a run, and refuses one that holds a
// run unless it is to be resumed. Of a model without a checkpoint, as in a copy of some files of a run,
// nothing can be resumed, and beginning anew would replace it.
func claim(dir string, resume bool) (*atomicfile.DirLock, error) {
	if dir == "" {
		return nil, fmt.Errorf("%w: no directory for the run; choose one with Dir", ErrOptions)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("pce: %w", err)
	}
	lock, err := atomicfile.Lock(dir)
	if err != nil {
		return nil, err
	}
	if err := atomicfile.RemoveTemps(dir); err != nil {
		lock.Close()
		return nil, err
	}
	if err := refused(dir, resume); err != nil {
		lock.Close()
		return nil, err
	}
	return lock, nil
}

// refused says why a run cannot be written to a directory.
func refused(dir string, resume bool) error {
	switch of := firstIn(dir, ModelFile, MetricsFile, ConfigFile, CheckpointDir, ResultFile); {
	case of == "":
		if name := firstIn(dir, SamplesFile, TextSamplesFile); name != "" { // without a run, of which they would be
			return fmt.Errorf("%w: %s has %s, which a run removes; choose another directory", ErrRun, dir, name)
		}
	case !resume:
		return fmt.Errorf("%w: %s has %s; continue it with Resume, or choose another directory", ErrRun, dir, of)
	default:
		steps, err := em.LastSteps(filepath.Join(dir, CheckpointDir))
		if err != nil {
			return err
		}
		if steps < 0 && firstIn(dir, ModelFile) != "" {
			return fmt.Errorf("%w: %s has %s and no checkpoint to continue from; bring its %s back, or train the model further from its file in another directory",
				ErrRun, dir, ModelFile, CheckpointDir)
		}
	}
	return nil
}

// firstIn returns the first of some names that a directory has, "" if it has none.
func firstIn(dir string, names ...string) string {
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return name
		}
	}
	return ""
}

// HistoryMark begins the lines at the end of config.yaml that say where the run
// was resumed with something else than before. They are comments: what is
// above them is the config that the run has now.
const HistoryMark = "# history: "

// startConfig writes the config of a run that has none. That of a run which is
// resumed stays until it is known that the run continues.
func (r *training) startConfig() error {
	if _, err := os.Lstat(r.path(ConfigFile)); r.opts.Resume && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return r.writeConfig(nil)
}

// renewConfig writes the config of a run that is resumed. The history of a run
// that continues is kept and what has changed is added to it.
func (r *training) renewConfig(t *em.Trainer, found bool) error {
	var history [][]byte
	if found {
		old, err := os.ReadFile(r.path(ConfigFile))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("pce: %w", err)
		}
		for line := range bytes.Lines(old) {
			if bytes.HasPrefix(line, []byte(HistoryMark)) {
				history = append(history, bytes.TrimSuffix(line, []byte("\n")))
			}
		}
	}
	if epochs, steps, changes := t.Resumed(); len(changes) > 0 {
		line := fmt.Appendf(nil, "%safter %d epochs and %d steps: %s", HistoryMark, epochs, steps, em.ListChanges(changes))
		// A run that was killed before its next checkpoint finds the same changes again.
		if n := len(history); n == 0 || !bytes.Equal(history[n-1], line) {
			history = append(history, line)
		}
	}
	return r.writeConfig(history)
}

func (r *training) writeConfig(history [][]byte) error {
	if r.opts.Config == nil {
		return nil
	}
	return atomicfile.Write(r.path(ConfigFile), 0o644, func(w io.Writer) error {
		_, err := w.Write(r.opts.Config)
		for _, line := range history {
			if err == nil {
				_, err = fmt.Fprintf(w, "%s\n", line)
			}
		}
		return err
	})
}

func (r *training) writeResult(res *Result) error {
	return atomicfile.Write(r.path(ResultFile), 0o644, func(w io.Writer) error { return json.NewEncoder(w).Encode(res) })
}

// SavedSteps returns how many steps the run in a directory had done when it saved its newest checkpoint, 0 without one: more than those
// of its result where it was resumed and has not come to its end since.
func SavedSteps(dir string) int64 {
	steps, err := em.LastSteps(filepath.Join(dir, CheckpointDir))
	if err != nil {
		return 0
	}
	return max(0, steps)
}

// removeResult removes the result and the samples of the model that is about to be replaced:
// the next one may be given no samples.
func (r *training) removeResult() error {
	for _, name := range []string{ResultFile, SamplesFile, TextSamplesFile} {
		if err := os.Remove(r.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("pce: %w", err)
		}
	}
	return nil
}

// circuitFile, among the checkpoints, has the circuit that their parameters
// belong to. Circuits are learned from rows, or have floors that follow from these, and rows may change.
const circuitFile = "circuit.gz"

// learned reports whether the circuit is made for the rows.
func (s *Structure) learned() bool { return s.Graph == nil && s.Kind != "file" }

// saveCircuit writes a circuit that was made for the rows of the run, or whose floors were.
func (r *training) saveCircuit() error {
	if r.kept || !r.opts.Structure.learned() && r.plan.given == nil {
		return nil
	}
	path := filepath.Join(r.path(CheckpointDir), circuitFile)
	if err := os.MkdirAll(r.path(CheckpointDir), 0o755); err != nil {
		return fmt.Errorf("pce: %w", err)
	}
	return atomicfile.Write(path, 0o644, r.plan.WriteCircuit)
}

// build makes the circuit of a run. One that is resumed with the settings that
// its circuit was learned with keeps the circuit, whatever has become of the rows.
func (o *TrainOptions) build(ctx context.Context) (b *Blueprint, kept bool, err error) {
	dir := filepath.Join(o.Dir, CheckpointDir)
	path := filepath.Join(dir, circuitFile)
	if _, err := os.Stat(path); o.Resume && o.Structure.learned() && err == nil {
		was := em.LastFingerprint(dir)
		if was != nil && !slices.ContainsFunc(em.CompareFacts(was, o.settings()), madeCircuit) {
			b, err := build(ctx, Structure{How: How{Path: PathTensor}, Kind: "file", File: path, Init: o.Structure.Init}, o.Train, o.Compile, o.OnStage, true)
			if !errors.Is(err, format.ErrModel) {
				return b, true, err
			}
			if l := o.EM.Logger; l != nil {
				l.Error("the circuit of the run is damaged, making it again", "err", err)
			}
		}
	}
	s := o.Structure
	s.How = How{Path: PathTensor} // code is not trained
	if s.Valid == nil {
		s.Valid = o.Valid
	}
	b, err = build(ctx, s, o.Train, o.Compile, o.OnStage, false)
	if err == nil && o.Resume {
		if err = b.keepFloors(path, em.LastProgram(dir), o.Compile); err != nil {
			b.Close()
		}
	}
	return b, false, err
}

// madeCircuit reports whether a change is one of a setting that circuits are made
// with. Those of data say what the columns are, and so which leaves there are.
func madeCircuit(c em.Change) bool {
	section, _, _ := strings.Cut(c.Name, ".")
	return !c.Free && slices.Contains([]string{"model", "data", "compile", "seed", "structure"}, section)
}
