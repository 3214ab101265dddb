package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/cluster/scale"
	"github.com/pce-engine/pce/compile"
)

// model compiles the structure that a name means, and takes its owners;
// params is the number of its parameters.
func (o *options) model(name string) (m scale.Model, params int64, err error) {
	parts := strings.Split(name, ":")
	numbers := []int{0, 0}
	for i, p := range parts[1:] {
		if i >= len(numbers) {
			return m, 0, fmt.Errorf("model %q; want STRUCTURE:LATENTS[:CATEGORIES]", name)
		}
		if numbers[i], err = strconv.Atoi(p); err != nil {
			return m, 0, fmt.Errorf("model %q: %q is not a number", name, p)
		}
	}
	g, err := graph(parts[0], numbers[0], numbers[1])
	if err != nil {
		return m, 0, err
	}
	r, err := compile.Compile(g, compile.DefaultOptions())
	if err != nil {
		return m, 0, err
	}
	n := circuit.Count(g)
	m = scale.Model{Name: name, Owners: r.Program.Owners()}
	m.Row = (o.node*float64(n.Nodes()) + o.edge*float64(n.SumEdges)) * 1e-9 / o.speed
	return m, n.Params(), nil
}

// graph makes a structure over 28×28 pixels, or of 32 words.
func graph(structure string, latents, categories int) (*circuit.Graph, error) {
	usual := 256
	if strings.HasSuffix(structure, "hmm") {
		usual = 33279
	}
	if categories == 0 {
		categories = usual
	}
	leaf := func(int) circuit.Leaf { return circuit.Categorical{Categories: categories} }
	switch structure {
	case "hclt":
		tree, err := structures.GridTree(28, 28, 1)
		if err != nil {
			return nil, err
		}
		return structures.HCLT(tree, structures.HCLTOptions{Latents: latents, Leaf: leaf})
	case "hmm", "untied-hmm":
		return structures.HMM(structures.HMMOptions{Length: 32, Latents: latents, Tied: structure == "hmm", Leaf: leaf})
	case "pd":
		p := structures.DefaultPD()
		p.Shape, p.Latents, p.Leaf = [3]int{28, 28, 1}, latents, leaf
		return structures.PD(p)
	case "rat-spn":
		p := structures.DefaultRATSPN()
		p.Vars, p.Latents, p.Leaf = 784, latents, leaf
		return structures.RATSPN(p)
	}
	return nil, fmt.Errorf("structure %q; want hclt, hmm, untied-hmm, pd or rat-spn", structure)
}
