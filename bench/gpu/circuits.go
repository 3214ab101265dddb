package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"time"
)

// structure is a circuit of Table 1.
type structure struct {
	name  string // of its config
	edges int    // sum edges are that many times the square of the latents
	sizes []int  // latents, as in the table
	peer  string // its name in PyJuice's benchmark
}

var (
	hclt       = structure{"hclt", 603, []int{64, 128, 256, 512, 1024}, "hclt"}
	ratspn     = structure{"ratspn", 124, []int{64, 128, 256, 512, 1024}, "rat"}
	hmm        = structure{"hmm", 31, []int{512, 1024, 2048, 4096, 6144}, "hmm"}
	pd         = structure{"pd", 3121, []int{64, 128, 256, 512, 768}, "pd"}
	structures = []structure{hclt, ratspn, hmm, pd}
)

// small replaces every number of latents in a rehearsal; a PD needs at least 64.
const small, smallPD = 2, 64

// circuit are the arguments that choose a circuit and its data, tiny in a rehearsal.
func (o *options) circuit(s structure, latents int) []string {
	args := []string{"--config", filepath.Join(o.configs, "table1-"+s.name+".yaml")}
	if o.rehearse {
		latents = small
		if s.name == pd.name {
			latents = smallPD
			args = append(args, "--set", "model.pd.split_interval=14")
		}
		args = append(args, "--set", "data.train="+o.rehearsalRows(s), "--set", "model.leaf.categories=4")
	}
	return append(args, "--set", "model.latents="+strconv.Itoa(latents), "--set", "precision="+o.precision)
}

// rehearsalRows names the few rows of a rehearsal.
func (o *options) rehearsalRows(s structure) string {
	vars := 784
	if s.name == hmm.name {
		vars = 32
	}
	return fmt.Sprintf("builtin:random?rows=16&vars=%d&categories=4", vars)
}

// rows is a number of rows, or a few in a rehearsal.
func (o *options) rows(n int) int {
	if o.rehearse {
		return 8
	}
	return n
}

// bench is a step that times training steps of a circuit at a batch size.
func (o *options) bench(name string, s structure, latents, batch int, more ...string) step {
	rows := strconv.Itoa(o.rows(batch))
	args := append([]string{o.pce, "bench"}, o.circuit(s, latents)...)
	args = append(args, "--batch", rows, "--set", "train.shard_rows="+rows, "--device", o.device, "--json")
	return step{name: name, command: append(append(args, o.length()...), more...), env: o.env}
}

// length are the arguments that say how long a bench measures.
func (o *options) length() []string {
	if o.rehearse {
		return []string{"--warmup", "0", "--steps", "1"}
	}
	return []string{"--time", o.measuring.String()}
}

// one is a part of one step, named after it.
func one(s step, budget time.Duration) part {
	return part{name: s.name, budget: budget, measures: true, steps: []step{s}}
}

// weighed is the budget of a bench: its start, the seconds that it measures, and time to make the
// parameters of that many sum edges on the host and to send them.
func weighed(edges int) time.Duration {
	return 8*time.Second + time.Duration(edges/40_000_000)*time.Second
}

// edgesOf is the number of sum edges of a circuit.
func edgesOf(s structure, latents int) int { return s.edges * latents * latents }
