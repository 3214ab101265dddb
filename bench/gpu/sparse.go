package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

// The block-sparse layer of Figure 7: tables of weights, cut into blocks of 32 units.
const (
	sparseTables = 200
	sparseUnits  = 1024
	sparseBlock  = 32
)

// sparseDropped are the shares of blocks that are dropped, in percent.
var sparseDropped = []int{0, 25, 50, 75, 90}

// sparse is one layer of block-sparse sums, with 0 to 90 % of the blocks dropped, each
// with the time of its kernels.
func sparse(o *options) (parts []part) {
	tables, units := sparseTables, sparseUnits
	if o.rehearse {
		tables, units = 3, 2*sparseBlock
	}
	for _, dropped := range sparseDropped {
		config, write := o.sparseFiles(tables, units, dropped)
		rows := strconv.Itoa(o.rows(512))
		command := []string{o.pce, "bench", "--config", config, "--set", "precision=" + o.precision, "--batch", rows, "--set", "train.shard_rows=" + rows, "--device", o.device, "--kernels", "--json"}
		s := step{name: "kernels", command: append(command, o.length()...), env: o.env, prepare: write}
		parts = append(parts, part{name: sparseName(dropped), budget: secs(14), measures: true, steps: []step{s}})
	}
	return parts
}

// sparseName names the part of a share of dropped blocks, in percent.
func sparseName(dropped int) string { return fmt.Sprintf("block-sparse layer, %d %% dropped", dropped) }

// sparseFiles names a config of the layer, and returns what writes it and its
// circuit.
func (o *options) sparseFiles(tables, units, dropped int) (config string, write func() error) {
	circuit := filepath.Join(o.work, fmt.Sprintf("sparse-%d.txt", dropped))
	config = filepath.Join(o.work, fmt.Sprintf("sparse-%d.yaml", dropped))
	return config, func() error {
		text := fmt.Sprintf("name: sparse\nmodel: {structure: file, file: %q}\n"+
			"data: {train: \"builtin:random?rows=4096&vars=%d&categories=4\"}\n"+
			"train: {rule: minibatch-em, epochs: 1, batch_size: 512, samples: 0}\n", circuit, tables)
		if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
			return err
		}
		return writeSparse(circuit, tables, units, dropped)
	}
}

// writeSparse writes a circuit of tables sums, each over a variable of its own,
// under one product. Every row and every column of blocks keeps one at least, that of the
// diagonal; as many of the others are dropped as make the share of all.
func writeSparse(path string, tables, units, dropped int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	rng := rand.New(rand.NewPCG(1, uint64(dropped)))
	n := units / sparseBlock
	others := (float64(n)*float64(100-dropped)/100 - 1) / float64(n-1) // the share of them that is kept
	fmt.Fprintf(w, "circuit %d\n", tables)
	for t := range tables {
		fmt.Fprintf(w, "a%d = input[%d] x%d categorical categories=4\n", t, units, t)
		fmt.Fprintf(w, "s%d = sum[%d] a%d edges %dx%d", t, units, t, sparseBlock, sparseBlock)
		for r := range n {
			for c := range n {
				if r == c || rng.Float64() < others {
					fmt.Fprintf(w, " (%d,%d)", r, c)
				}
			}
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, "p = product")
	for t := range tables {
		fmt.Fprintf(w, " s%d", t)
	}
	fmt.Fprintln(w, "\nr = sum p")
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}
