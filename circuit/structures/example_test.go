package structures_test

import (
	"fmt"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/structures"
)

func Example() {
	tree, err := structures.GridTree(28, 28, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := structures.HCLT(tree, structures.HCLTOptions{
		Latents: 64,
		Leaf:    func(int) circuit.Leaf { return circuit.Categorical{Categories: 256} },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	n, k, m := int64(28*28), int64(tree.Inner()), int64(64)
	size := circuit.Count(g)
	fmt.Println(size.Nodes() == (n+k-1)*m+1, size.Edges() == (k-1)*m*m+(n+k)*m)
	// Output: true true
}

func ExamplePublishedPDSize() {
	opts := structures.DefaultPD()
	opts.Shape, opts.Latents = [3]int{28, 28, 1}, 256
	nodes, edges, err := structures.PublishedPDSize(opts)
	fmt.Println(nodes, edges, err)
	// Output: 687873 213285888 <nil>
}
