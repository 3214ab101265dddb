package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/report"
	"github.com/pce-engine/pce/run"
)

func (a *app) runsCommand() *cobra.Command {
	c := &cobra.Command{Use: "runs", Short: "List runs of training, and compare two"}
	c.AddCommand(a.runsListCommand(), a.runsCompareCommand())
	return c
}

// runEntry is a run of a directory. Figures that are unknown are nil.
type runEntry struct {
	Run          string   `json:"run"` // its directory
	Done         bool     `json:"done"`
	Epochs       int      `json:"epochs"` // done
	ValidLL      *float64 `json:"valid_ll"`
	TestLL       *float64 `json:"test_ll"`
	TestBPD      *float64 `json:"test_bpd"`
	TrainSeconds float64  `json:"train_seconds"`
	Objective    string   `json:"objective,omitempty"` // what its log-likelihoods are of, of a discriminative run
	Problem      string   `json:"problem,omitempty"`   // with its files

	validated, tested bool // of such rows it has the log-likelihood, which is -Inf where JSON has none
}

// runsListCommand makes the command pce runs list, which reads what runs wrote and opens no
// model. It may be called while a run is in progress. A run whose files are damaged is listed
// with what is wrong, rather than ending the list.
func (a *app) runsListCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list [DIR]",
		Short: "List the runs below a directory, with what they came to",
		Long: `List the runs in the directories below DIR (runs if it is left out), or the run that DIR
is. Log-likelihoods are means over rows in nats; those of a run that is not done are of its
last epoch. One that was resumed for more epochs is partial until their end. Below the table
is what those of train.discriminative are of.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := "runs"
			if len(args) > 0 {
				dir = args[0]
			}
			list, closed, err := listRuns(dir)
			if err != nil {
				return err
			}
			for _, err := range closed {
				a.tell("note: a directory is left out: %v", err)
			}
			if asJSON {
				return a.printJSON(map[string]any{"runs": list})
			}
			columns, _ := columnsOf(a.stdout)
			_, err = fmt.Fprint(a.stdout, runsTable(list, columns))
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// listRuns returns the run that dir is, or those in directories below it, by name. closed has an error for each directory
// that may hold a run and cannot be looked into, such as one of another user.
func listRuns(dir string) (list []runEntry, closed []error, err error) {
	list = []runEntry{} // [] in JSON
	if isRun(dir) {
		return append(list, readRun(dir)), nil, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("pce: %w; give a directory that has runs", err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if isRun(path) {
			list = append(list, readRun(path))
		} else if _, err := os.Stat(filepath.Join(path, run.MetricsFile)); errors.Is(err, fs.ErrPermission) {
			closed = append(closed, err)
		}
	}
	return list, closed, nil
}

// readRun reads what a run came to, or how far it is.
func readRun(dir string) runEntry {
	r := runEntry{Run: dir}
	epochs, damage := report.ReadEpochs(filepath.Join(dir, run.MetricsFile))
	res, err := report.ReadResult(filepath.Join(dir, run.ResultFile))
	if err == nil && !res.Before(dir, epochs) {
		r.Done, r.Epochs, r.ValidLL, r.TestLL, r.TestBPD, r.TrainSeconds = true, res.Epochs, res.ValidLL, res.TestLL, res.TestBPD, res.TrainSeconds
		r.Objective = res.Objective
		if r.Objective == "" {
			r.validated, r.tested = rowsOf(dir)
		}
		return r
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.Problem = oneLine(fmt.Sprintf("%s: %v", run.ResultFile, err))
	}
	if damage != nil && len(epochs) == 0 && !errors.Is(damage, fs.ErrNotExist) && !errors.Is(damage, report.ErrNoEpoch) {
		r.Problem = oneLine(fmt.Sprintf("%s: %v", run.MetricsFile, damage))
	}
	for _, e := range epochs {
		r.Epochs, r.ValidLL = e.Epoch, e.ValidLL
		r.TrainSeconds += e.Seconds
	}
	discriminative, err := isDiscriminative(dir)
	if err != nil && r.Problem == "" {
		r.Problem = oneLine(err.Error())
	}
	if discriminative {
		r.Objective = discriminativeObjective
	} else if n := len(epochs); n > 0 && epochs[n-1].Step > 0 { // not one whose line was lost
		r.validated, _ = rowsOf(dir)
	}
	return r
}

// rowsOf reports whether the config of a run names rows of validation and test.
func rowsOf(dir string) (valid, test bool) {
	cfg, _, err := configs.Load(configs.Options{Files: []string{filepath.Join(dir, run.ConfigFile)}})
	if err != nil {
		return false, false
	}
	named := func(paths configs.Paths) bool {
		return slices.ContainsFunc(paths, func(p string) bool { return p != "" })
	}
	return named(cfg.Data.Valid), named(cfg.Data.Test)
}

// discriminativeObjective is what log-likelihoods of a discriminative run are of, where no result says it with the names of columns.
const discriminativeObjective = "the objective of train.discriminative"

// isDiscriminative reports whether the config of a run has train.discriminative, so that its log-likelihoods are of that objective.
// A directory without a config, such as one of metrics alone, has not; of one that cannot be read the error says why it is unknown.
func isDiscriminative(dir string) (bool, error) {
	path := filepath.Join(dir, run.ConfigFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	cfg, _, err := configs.Load(configs.Options{Files: []string{path}})
	return err == nil && cfg.Train.Discriminative > 0, err
}

// runsTable lists runs for people, one line for each and none longer than columns. Names that
// are too long for the line lose their start, since runs of one folder differ at the end.
func runsTable(list []runEntry, columns int) string {
	if len(list) == 0 {
		return "no runs\n"
	}
	const figuresWidth = 2 + 7 + 7 + 10 + 10 + 9 + 9 // of the columns behind the name
	width := len("run")
	for _, r := range list {
		width = max(width, utf8.RuneCountInString(r.Run))
	}
	width = max(8, min(width, columns-figuresWidth))
	var b strings.Builder
	line := func(name, state, epochs, valid, test, bpd, took string) {
		if n := []rune(name); len(n) > width {
			name = "..." + string(n[len(n)-width+3:])
		}
		text := fmt.Sprintf("%-*s  %-7s%7s%10s%10s%9s%9s", width, name, state, epochs, valid, test, bpd, took)
		b.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	line("run", "state", "epochs", "valid ll", "test ll", "test bpd", "trained")
	for _, r := range list {
		state := "done"
		switch {
		case r.Problem != "":
			state = "damaged"
		case !r.Done:
			state = "partial"
		}
		line(r.Run, state, count(int64(r.Epochs)), orImpossible(r.ValidLL, r.validated), orImpossible(r.TestLL, r.tested), known(r.TestBPD), span(time.Duration(r.TrainSeconds*float64(time.Second))))
	}
	for _, r := range list {
		if r.Objective != "" {
			b.WriteString(wrap(fmt.Sprintf("%s: ll are of %s", oneLine(r.Run), oneLine(r.Objective)), "  ", columns) + "\n")
		}
	}
	return b.String()
}

// orImpossible is known of a log-likelihood, which is -Inf if there are rows for it and it has no number.
func orImpossible(x *float64, rows bool) string {
	if x == nil && rows {
		return figure(math.Inf(-1))
	}
	return known(x)
}

// known writes a figure, or a dash if it is not known.
func known(x *float64) string {
	if x == nil {
		return "-"
	}
	return figure(*x)
}
