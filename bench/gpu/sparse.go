package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

// The block-sparse layer: tables of weights, cut into blocks of 32 units.
const (
	sparseTables = 200
	sparseUnits  = 1024
	sparseBlock  = 32
)

// sparse is one layer of block-sparse sums, with 0 to 90 % of the blocks dropped.
func sparse(o *options) []task {
	tables, units := sparseTables, sparseUnits
	if o.rehearse {
		tables, units = 3, 2*sparseBlock
	}
	var out []task
	for _, dropped := range []int{0, 25, 50, 75, 90} {
		config, make := o.sparseFiles(tables, units, dropped)
		args := []string{"bench", "--config", config, "--set", "precision=" + o.precision, "--batch", strconv.Itoa(o.rows(512)), "--device", o.device, "--json"}
		if o.rehearse {
			args = append(args, "--warmup", "0", "--steps", "1")
		}
		out = append(out, task{name: fmt.Sprintf("%d tables, %d %% dropped", tables, dropped), args: args, prepare: make, cost: tables * units * units * 512 * (100 - dropped) / 100})
	}
	return out
}

// rows is a number of rows, or a few in a rehearsal.
func (o *options) rows(n int) int {
	if o.rehearse {
		return 8
	}
	return n
}

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
// under one product. Every row and every column of blocks keeps one at least.
func writeSparse(path string, tables, units, dropped int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	rng := rand.New(rand.NewPCG(1, uint64(dropped)))
	n := units / sparseBlock
	fmt.Fprintf(w, "circuit %d\n", tables)
	for t := range tables {
		fmt.Fprintf(w, "a%d = input[%d] x%d categorical categories=4\n", t, units, t)
		fmt.Fprintf(w, "s%d = sum[%d] a%d edges %dx%d", t, units, t, sparseBlock, sparseBlock)
		for r := range n {
			for c := range n {
				if r == c || rng.IntN(100) >= dropped {
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
