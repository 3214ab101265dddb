package run_test

import (
	"context"
	"fmt"

	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/run"
)

func ExampleBuild() {
	s := run.DefaultStructure()
	s.Kind, s.Latents = "hmm", 512
	b, err := run.Build(context.Background(), s, run.Files("builtin:random?rows=1&vars=32&categories=100"), compile.Options{})
	if err != nil {
		panic(err)
	}
	defer b.Close()
	info, err := b.Info(run.Load{Train: true})
	if err != nil {
		panic(err)
	}
	fmt.Println(info.Nodes, "nodes,", info.Edges, "edges")
	// Output: 32257 nodes, 8158720 edges
}
