package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The steps that measure code, by which the tables find them.
const (
	networkStep = "network as code"
	forestStep  = "forest as code"
)

// codeBudget is the budget of a part that measures code: its start, the driver's
// compiler, and a second of measurement, which is all that most parts take.
const codeBudget = 15 * time.Second

// network is a sum-product network with rows for it.
type network struct {
	name string // of model and rows
	file string // in the folder of networks
	rows madeRows
}

// networks are a network of normal leaves, with all cells and with half of them, and two
// of histograms of counts.
var networks = []network{
	{"speaker_FADG0 clean", "speaker_FADG0.bin", madeRows{columns: 26, cell: wideCell}},
	{"speaker_FADG0 noisy", "speaker_FADG0.bin", madeRows{columns: 26, missing: 0.5, cell: wideCell}},
	{"NIPS5", "NIPS5.spn", madeRows{columns: 5, cell: countCell}},
	{"NIPS40", "NIPS40.spn", madeRows{columns: 40, cell: countCell}},
}

// forests are the folders of trained forests.
var forests = []string{"xgb-higgs", "xgb-airline"}

// The batches that code is measured at. A million rows of the sweep's largest forests
// may take more than a part's time, so its largest batch has a quarter of them.
var (
	networkBatches = []int{4096, 65536}
	forestBatches  = []int{512, 4096, 1 << 20}
	sweepBatches   = []int{512, 4096, 1 << 18}
)

// The made-up forests of the sweep.
var (
	sweepDepths = []int{2, 4, 8}
	sweepTrees  = []int{16, 128, 1024}
)

const sweepFeatures = 28

// codeParts are the networks and forests that run as code, where their folders are
// given, and a sweep of made-up forests. A rehearsal has one schedule and one forest of
// the sweep.
func codeParts(o *options) (parts []part) {
	if o.networks != "" {
		for _, n := range networks {
			for _, numbers := range []string{"f32", "f64"} {
				for _, batch := range networkBatches {
					parts = append(parts, o.networkPart(n, numbers, batch))
				}
			}
		}
	}
	schedules, depths, trees := o.schedules, sweepDepths, sweepTrees
	if o.rehearse {
		schedules, depths, trees = schedules[:1], depths[:1], trees[:1]
	}
	if o.forests != "" {
		for _, name := range forests {
			for _, schedule := range schedules {
				for _, batch := range forestBatches {
					parts = append(parts, o.trainedPart(name, schedule, batch))
				}
			}
		}
	}
	for _, depth := range depths {
		for _, n := range trees {
			for _, batch := range sweepBatches {
				parts = append(parts, o.sweepPart(depth, n, schedules[0], batch))
			}
		}
	}
	return parts
}

// networkPart measures log-likelihoods of a network.
func (o *options) networkPart(n network, numbers string, batch int) part {
	data := filepath.Join(o.work, n.name+".csv")
	s := o.codeStep(networkStep, batch, filepath.Join(o.networks, n.file), data)
	s.command = append(s.command, "--path", "code", "--type", numbers)
	s.prepare = func() error { return n.rows.write(data, o.rows(maxMadeRows)) }
	return part{name: fmt.Sprintf("%s %s batch %d", n.name, numbers, batch), budget: codeBudget, measures: true, steps: []step{s}}
}

// trainedPart measures predictions of a trained forest.
func (o *options) trainedPart(name, schedule string, batch int) part {
	return o.forestPart(name, schedule, batch, firstOf(filepath.Join(o.forests, name, "*.json.gz")), filepath.Join(o.forests, name, "input.csv.gz"), nil)
}

// sweepPart measures predictions of a made-up forest.
func (o *options) sweepPart(depth, trees int, schedule string, batch int) part {
	name := fmt.Sprintf("%d-trees-of-depth-%d", trees, depth)
	model, data := filepath.Join(o.work, name+".json"), filepath.Join(o.work, "sweep.csv")
	return o.forestPart(name, schedule, batch, model, data, func() error {
		if err := writeForest(model, depth, trees, sweepFeatures); err != nil {
			return err
		}
		return madeRows{columns: sweepFeatures, cell: normalCell}.write(data, o.rows(maxMadeRows))
	})
}

// forestPart measures predictions of a forest on rows, whose files prepare writes, if it
// is not nil.
func (o *options) forestPart(name, schedule string, batch int, model, data string, prepare func() error) part {
	s := o.codeStep(forestStep, batch, model, data)
	s.command, s.prepare = append(s.command, "--schedule", schedule), prepare
	return part{name: fmt.Sprintf("%s %s batch %d", name, scheduleName(schedule), batch), budget: codeBudget, measures: true, steps: []step{s}}
}

// codeStep is a step that measures code for a second. How the model is compiled is still
// to be added.
func (o *options) codeStep(name string, batch int, model, data string) step {
	command := []string{o.pce, "bench", "--model", model, "--data", data, "--batch", strconv.Itoa(o.rows(batch)), "--device", o.device, "--kernels", "--json"}
	if o.rehearse {
		command = append(command, o.length()...)
	} else {
		command = append(command, "--time", (o.measuring / 2).String())
	}
	return step{name: name, command: command, env: o.env}
}

// firstOf returns the first file of a pattern. A pattern without one stays, and pce
// names it in its error.
func firstOf(pattern string) string {
	if files, err := filepath.Glob(pattern); err == nil && len(files) > 0 {
		return files[0]
	}
	return pattern
}

// schedulesIn returns the files of schedules in a folder, and behind them the way of Tahoe
// that takes any forest.
func schedulesIn(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.schedule"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("-schedules: no file *.schedule in %s", dir)
	}
	return append(files, "preset:tahoe-direct"), nil
}

// scheduleName is what parts call a schedule.
func scheduleName(file string) string {
	return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "preset:"), ".schedule")
}

// codeTime is what the tables show of a measurement of code. Devices that do not time
// their kernels leave out the fields on these.
type codeTime struct {
	SecondsPer1k float64 `json:"seconds_per_1k_samples"`
	KernelsPer1k float64 `json:"kernel_seconds_per_1k_samples"`
	CopyShare    float64 `json:"copy_share"`
	Batch        int     `json:"batch"`
	Samples      int     `json:"samples"`
	Recomputed   int64   `json:"recomputed_tiles"`
}

// codeRow is a row of the tables.
type codeRow struct {
	first, second string // words of the part's name
	mark          string
	codeTime
}

// codeRows are the measurements of a step. split cuts the name of a part, less its batch,
// in two.
func (r *report) codeRows(step string, split func(name string) int) (rows []codeRow) {
	for _, one := range r.parts {
		var t codeTime
		if !one.result(step, &t) || t.SecondsPer1k == 0 {
			continue
		}
		name, _, _ := strings.Cut(one.Part, " batch ")
		at := split(name)
		rows = append(rows, codeRow{name[:at], name[at+1:], r.mark(one), t})
	}
	return rows
}

// speeds are the cells on batch and speeds. Rows per microsecond are million rows per
// second.
func (t codeTime) speeds() string {
	host := fmt.Sprintf(" %d | %.4g |", t.Batch, 1e-3/t.SecondsPer1k)
	if t.KernelsPer1k == 0 {
		return host + " | |"
	}
	return host + fmt.Sprintf(" %.4g | %.0f %% |", 1e-3/t.KernelsPer1k, 100*t.CopyShare)
}

// networks are the speeds of networks that run as code. The host's time includes rows
// that are computed again, as their likelihoods are too small for the numbers.
func (r *report) networks() {
	rows := r.codeRows(networkStep, func(name string) int { return strings.LastIndexByte(name, ' ') })
	if len(rows) == 0 {
		return
	}
	r.title("Networks as code, rows per microsecond", "| network | numbers | batch | rows in the host's memory | rows on the card | share of copies | rows computed again |")
	for _, row := range rows {
		fmt.Fprintf(r.w, "| %s%s | %s |%s %.0f %% |\n", row.first, row.mark, row.second, row.speeds(), 100*float64(row.Recomputed)/float64(max(1, row.Samples)))
	}
}

// forests are the speeds of forests that run as code.
func (r *report) forests() {
	rows := r.codeRows(forestStep, func(name string) int { return strings.IndexByte(name, ' ') })
	if len(rows) == 0 {
		return
	}
	r.title("Forests, million rows per second", "| forest | schedule | batch | rows in the host's memory | rows on the card | share of copies |")
	for _, row := range rows {
		fmt.Fprintf(r.w, "| %s%s | %s |%s\n", row.first, row.mark, row.second, row.speeds())
	}
}
