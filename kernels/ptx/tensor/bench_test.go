package tensor_test

import (
	"testing"

	"github.com/pce-engine/pce/kernels/ptx"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// BenchmarkModule makes the text of a variant's kernels.
func BenchmarkModule(b *testing.B) {
	for b.Loop() {
		tensor.Variant{Block: 32, Major: 9}.Module().Text()
	}
}

// BenchmarkParse reads and verifies the text of a variant's kernels.
func BenchmarkParse(b *testing.B) {
	text := tensor.Variant{Block: 32, Major: 9}.Module().Text()
	for b.Loop() {
		m, err := ptx.Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		if err := m.Verify(); err != nil {
			b.Fatal(err)
		}
	}
}
