package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// measured is what the tables show of a result of pce bench.
type measured struct {
	SecondsPer1k float64            `json:"seconds_per_1k_samples"`
	Fraction     float64            `json:"fraction_of_floor"`
	Phases       map[string]float64 `json:"phase_seconds_per_1k"`
	Bytes        int64              `json:"device_memory_bytes"`
	Edges        int64              `json:"sum_edges"`
	Kernels      []kernelTime       `json:"kernel_seconds_per_step"`
}

// kernelTime is what the launches of a kernel take in a step, measured and by the model;
// the model's time is 0 where it does not know the card.
type kernelTime struct {
	Kernel   string  `json:"kernel"`
	Phase    string  `json:"phase"`
	Launches int     `json:"launches"`
	Seconds  float64 `json:"seconds"`
	Expected float64 `json:"expected_seconds"`
	Bound    string  `json:"bound"` // the largest term of the model's time
}

// peerResult is what the tables show of PyJuice's, or why there is nothing to show.
type peerResult struct {
	Batch  int     `json:"batch"`
	Per60k float64 `json:"seconds_per_60k"`
	Bytes  int64   `json:"peak_mem_bytes"`
	Error  string  `json:"error"`
}

// report are the records that count: of each part the last one without an error, or
// the last one.
type report struct {
	all   []record
	parts []record
	w     io.Writer
	doubt bool // a row was marked
}

// printTables writes the results of a file as Markdown tables.
func printTables(w io.Writer, path string) error {
	records, err := readRecords(path)
	if err != nil {
		return err
	}
	r := &report{all: records, w: w}
	for _, one := range records {
		i := slices.IndexFunc(r.parts, func(p record) bool { return p.Part == one.Part })
		switch {
		case i < 0:
			r.parts = append(r.parts, one)
		case one.Error == "" || r.parts[i].Error != "":
			r.parts[i] = one
		}
	}
	r.machine()
	r.card()
	r.rows()
	r.peers()
	r.kernels()
	r.figure2()
	r.figure7()
	r.networks()
	r.forests()
	r.unfinished()
	if r.doubt {
		fmt.Fprintln(w, "\n(!) the conformance suite had not passed on this build of pce when the row was measured, or has failed since.")
	}
	return nil
}

// part returns the record of a part that has no error.
func (r *report) part(name string) (record, bool) {
	i := slices.IndexFunc(r.parts, func(p record) bool { return p.Part == name && p.Error == "" })
	if i < 0 {
		return record{}, false
	}
	return r.parts[i], true
}

// mark returns the sign of rows in doubt.
func (r *report) mark(one record) string {
	if stateOf(r.all, one.Build) == suitePassed && one.Suite == suitePassed {
		return ""
	}
	r.doubt = true
	return " (!)"
}

// machine names the card, the driver, the build and what the suite said.
func (r *report) machine() {
	if one, ok := r.part("doctor"); ok {
		var d struct {
			Cards []struct {
				Name   string `json:"name"`
				Driver string `json:"driver_version"`
			} `json:"cards"`
		}
		one.result("doctor", &d)
		for _, c := range d.Cards {
			fmt.Fprintf(r.w, "%s, driver for CUDA %s, %s.\n", c.Name, c.Driver, one.Begun[:len("2006-01-02")])
		}
	}
	var builds []string
	for _, one := range r.all {
		if !slices.Contains(builds, one.Build) {
			builds = append(builds, one.Build)
			fmt.Fprintf(r.w, "Build %s: conformance suite %s.\n", one.Build, stateOf(r.all, one.Build))
		}
	}
	var c comparison
	if one, ok := r.part("hclt-64 beside the CPU"); ok && one.result("compare", &c) {
		fmt.Fprintf(r.w, "HCLT-64: log-likelihoods of %d rows differ from the CPU's by %.2g nats at most (%.2g allowed); means %.6g and %.6g.\n",
			c.Rows, c.Worst, c.Allowed, c.CardMean, c.CPUMean)
	}
}

// rows are the training steps: a row for each record of one bench.
func (r *report) rows() {
	r.title("Training steps, seconds for 60,000 samples", "| circuit | s | forward | backward | update | of the floor | MiB |")
	for _, one := range r.parts {
		var m measured
		if len(one.Steps) != 1 || one.Steps[0].Name != one.Part || !one.result(one.Part, &m) || m.SecondsPer1k == 0 {
			continue
		}
		fmt.Fprintf(r.w, "| %s%s | %.3g | %.3g | %.3g | %.3g | %.0f %% | %d |\n", one.Part, r.mark(one), 60*m.SecondsPer1k,
			60*m.Phases["forward"], 60*m.Phases["backward"], 60*m.Phases["update"], 100*m.Fraction, m.Bytes>>20)
	}
}

// peers are pce and PyJuice side by side; pce's time is the mean of the two around.
func (r *report) peers() {
	r.title("Beside PyJuice, seconds for 60,000 samples", "| circuit, PyJuice's kernels | pce before | PyJuice | pce after | times | pce MiB | PyJuice MiB |")
	for _, one := range r.parts {
		name, kernels, ok := strings.Cut(one.Part, " beside PyJuice, ")
		var before, after measured
		var p peerResult
		if !ok || !one.result("pce", &before) || !one.result("pce again", &after) || !one.result("pyjuice", &p) || p.Per60k == 0 {
			continue
		}
		own := 30 * (before.SecondsPer1k + after.SecondsPer1k)
		fmt.Fprintf(r.w, "| %s%s, %s | %.3g | %.3g | %.3g | %.1f | %d | %d |\n", name, r.mark(one), kernels, 60*before.SecondsPer1k, p.Per60k,
			60*after.SecondsPer1k, p.Per60k/own, before.Bytes>>20, p.Bytes>>20)
	}
}

// kernels are the times of kernels beside the model's.
func (r *report) kernels() {
	for _, one := range r.parts {
		var m measured
		name, ok := strings.CutPrefix(one.Part, "kernels of ")
		if !ok || !one.result("kernels", &m) {
			continue
		}
		r.title("Kernels of a step of "+name+r.mark(one)+", microseconds", "| kernel | launches | measured | modelled | measured / modelled | modelled bound |")
		var total kernelTime
		total.Kernel = "all"
		for _, k := range m.Kernels {
			total.Launches, total.Seconds, total.Expected = total.Launches+k.Launches, total.Seconds+k.Seconds, total.Expected+k.Expected
		}
		for _, k := range append(slices.Clip(m.Kernels), total) {
			fmt.Fprintf(r.w, "| %s | %d | %.4g |%s\n", k.Kernel, k.Launches, 1e6*k.Seconds, against(k))
		}
	}
}

// against are the cells on the model's time, empty where it has none.
func against(k kernelTime) string {
	if k.Expected == 0 {
		return " | | |"
	}
	return fmt.Sprintf(" %.4g | %.2f | %s |", 1e6*k.Expected, k.Seconds/k.Expected, k.Bound)
}

// unfinished are the parts that failed.
func (r *report) unfinished() {
	for _, one := range r.parts {
		if one.Error != "" {
			first, _, _ := strings.Cut(one.Error, "\n")
			fmt.Fprintf(r.w, "\n%s failed after %.0f s: %s\n", one.Part, one.Seconds, first)
		}
	}
}

// title begins a table.
func (r *report) title(title, head string) {
	fmt.Fprintf(r.w, "\n%s:\n\n%s\n%s\n", title, head, strings.Repeat("|---", strings.Count(head, "|")-1)+"|")
}

// card lists what the card can do and how it computes, as the parts of the other
// program have found it.
func (r *report) card() {
	r.title("The card", "| | measured | |")
	for _, one := range r.parts {
		for _, s := range one.Steps {
			for _, raw := range s.Results {
				var x struct {
					Reading string  `json:"reading"`
					Value   float64 `json:"value"`
					Unit    string  `json:"unit"`
					Note    string  `json:"note"`
				}
				if json.Unmarshal(raw, &x) == nil && x.Reading != "" {
					fmt.Fprintf(r.w, "| %s | %.4g %s | %s |\n", x.Reading, x.Value, x.Unit, x.Note)
				}
			}
		}
	}
}
