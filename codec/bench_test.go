package codec

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
)

// images makes an HCLT of the size of MNIST's, 604 of whose 784 variables have children,
// and rows drawn from it.
func images(b *testing.B, latents, rows int) (*Model, []byte) {
	b.Helper()
	tree := structures.Tree{Parent: make([]int, 784)}
	for v := range tree.Parent {
		tree.Parent[v] = v - 1 // a chain of 604
		if v >= 604 {
			tree.Parent[v] = 3 * (v - 604) // and leaves beside it
		}
	}
	g, err := structures.HCLT(tree, structures.HCLTOptions{Latents: latents, Leaf: func(int) circuit.Leaf { return circuit.Categorical{Categories: 256} }})
	if err != nil {
		b.Fatal(err)
	}
	p, err := reference.Init(g, 1, nil)
	if err != nil {
		b.Fatal(err)
	}
	m, err := New(g, p.Read, reference.Schema(g))
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	out := []byte{0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, 28, 0, 0, 0, 28}
	for range rows * 784 { // mostly black, as MNIST's are
		x := byte(0)
		if rng.IntN(5) == 0 {
			x = byte(rng.IntN(256))
		}
		out = append(out, x)
	}
	return m, out
}

func BenchmarkCodec(b *testing.B) {
	m, content := images(b, 32, 512)
	var file bytes.Buffer
	b.Run("way=compress", func(b *testing.B) {
		b.SetBytes(int64(len(content)))
		for b.Loop() {
			file.Reset()
			if _, err := m.Compress(context.Background(), &file, bytes.NewReader(content)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("way=decompress", func(b *testing.B) {
		b.SetBytes(int64(len(content)))
		for b.Loop() {
			if _, err := m.Decompress(context.Background(), new(bytes.Buffer), bytes.NewReader(file.Bytes())); err != nil {
				b.Fatal(err)
			}
		}
	})
}
