package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// task is one measurement: a command whose last line of output is a JSON object.
type task struct {
	name string
	args []string
	peer bool // PyJuice, not pce
	// prepare, if there is one, writes the files that the command reads.
	prepare func() error
	cost    int // in sum edges and samples; cheap ones go first
}

// structure is a circuit of Table 1.
type structure struct {
	name  string
	edges int // the coefficient of latents squared
	sizes []int
	peer  string // its name in the peer's benchmark
}

var structures = []structure{
	{"hclt", 603, []int{64, 256, 512}, "hclt"},
	{"ratspn", 124, []int{64, 256, 1024}, "rat"},
	{"hmm", 31, []int{512, 2048, 4096}, "hmm"},
	{"pd", 3121, []int{64, 128, 256}, "pd"},
}

// small stands in for every size in a rehearsal without a card.
const small = 2

// sets are the measurements that can be asked for.
var sets = map[string]func(o *options) []task{
	"main":       table1,
	"rat-batch":  ratBatches,
	"block-size": blockSizes,
	"memory":     memory,
	"sparse":     sparse,
}

// bench is a task of pce bench.
func (o *options) bench(name string, s structure, latents, batch int, more ...string) task {
	if o.rehearse {
		latents, batch = small, 8
		if s.name == "pd" {
			latents = 64 // the least of a PD
			more = append(more, "--set", "model.pd.split_interval=14")
		}
		more = append(more, "--set", "data.train=builtin:random?rows=16&vars=784&categories=4", "--set", "model.leaf.categories=4")
		if s.name == "hmm" {
			more = append(more, "--set", "data.train=builtin:random?rows=16&vars=32&categories=4")
		}
		more = append(more, "--warmup", "0", "--steps", "1")
	}
	args := []string{
		"bench", "--config", filepath.Join(o.configs, "table1-"+s.name+".yaml"),
		"--set", "model.latents=" + strconv.Itoa(latents), "--set", "precision=" + o.precision,
		"--batch", strconv.Itoa(batch), "--set", "train.shard_rows=" + strconv.Itoa(batch), "--device", o.device, "--json",
	}
	return task{name: name, args: append(args, more...), cost: s.edges * latents * latents * batch}
}

// table1 is the four structures at three sizes each, at batch 512 and at the
// largest batch of one launch, each beside its peer.
func table1(o *options) []task {
	var out []task
	for _, s := range structures {
		for _, m := range s.sizes {
			for _, batch := range []int{512, 2048} {
				t := o.bench(fmt.Sprintf("%s-%d batch %d", s.name, m, batch), s, m, batch)
				out = append(out, t)
			}
			if o.pyjuice != "" {
				out = append(out, task{
					name: fmt.Sprintf("pyjuice %s-%d", s.name, m), peer: true, cost: s.edges * m * m * 2048,
					args: []string{o.peer, "--pyjuice", o.pyjuice, "--only", fmt.Sprintf("%s:%d", s.peer, m), "--batches", "512,2048"},
				})
			}
		}
	}
	return out
}

// ratBatches is RAT-SPN 512 at many batch sizes.
func ratBatches(o *options) []task {
	var out []task
	for batch := 8; batch <= 512; batch *= 2 {
		out = append(out, o.bench(fmt.Sprintf("ratspn-512 batch %d", batch), structures[1], 512, batch))
	}
	return out
}

// blockSizes is one PD at every size of blocks.
func blockSizes(o *options) []task {
	var out []task
	for size := 1; size <= 32; size *= 2 {
		out = append(out, o.bench(fmt.Sprintf("pd-64 blocks of %d", size), structures[3], 64, 512, "--set", "compile.block_size="+strconv.Itoa(size)))
	}
	return out
}

// memory is the peak memory of two circuits over the batch.
func memory(o *options) []task {
	var out []task
	for batch := 64; batch <= 2048; batch *= 2 {
		out = append(out, o.bench(fmt.Sprintf("hclt-512 memory, batch %d", batch), structures[0], 512, batch, "--steps", "1"),
			o.bench(fmt.Sprintf("hmm-2048 memory, batch %d", batch), structures[2], 2048, batch, "--steps", "1"))
	}
	return out
}

// plan lists the tasks of the sets that were asked for, cheapest first.
func plan(o *options) ([]task, error) {
	var out []task
	for _, name := range o.sets {
		make, ok := sets[name]
		if !ok {
			return nil, fmt.Errorf("no set %q; want main, rat-batch, block-size, memory or sparse", name)
		}
		out = append(out, make(o)...)
	}
	slices.SortStableFunc(out, func(a, b task) int { return a.cost - b.cost })
	first := []task{{name: "doctor", args: []string{"doctor", "--json"}}}
	if o.rehearse { // what has become the same runs once
		ran := map[string]bool{}
		out = slices.DeleteFunc(out, func(t task) bool {
			key := strings.Join(t.args, " ")
			again := ran[key]
			ran[key] = true
			return t.peer || again
		})
	}
	return append(first, out...), nil
}
