package tensor_test

import (
	"testing"

	"github.com/pce-engine/pce/kernels/emulator"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// TestExponents adds up every three exponents around the ends of their range. A
// sum that has come to Lost stays there, whatever follows.
func TestExponents(t *testing.T) {
	edges := []int32{0, 1, -149, 1 << 20, 1 << 28, tensor.Most, -1 << 29, -1442695041, tensor.Lost + 1<<20, tensor.Lost + 1, tensor.Lost}
	add := func(a, b int32) int32 {
		switch sum := float64(a) + float64(b); {
		case a == tensor.Lost || b == tensor.Lost || sum < tensor.Lost:
			return tensor.Lost
		case sum > tensor.Most:
			return tensor.Most
		default:
			return int32(sum)
		}
	}
	var terms []int32
	for _, a := range edges {
		for _, b := range edges {
			for _, c := range edges {
				terms = append(terms, a, b, c)
			}
		}
	}
	n := len(terms) / 3
	blocks := (n + 127) / 128
	c := newRowCard(t, tensor.Variant{Block: 8, Major: 8}, emulator.Options{})
	c.put(tensor.ArgList, append(terms, make([]int32, 3*(128*blocks-n))...))
	c.launch("exponents", blocks)
	got := get[int32](c, tensor.ArgList, 3*n)
	for i := range n {
		a, b, x := terms[3*i], terms[3*i+1], terms[3*i+2]
		want := add(add(a, b), x)
		if got[3*i+1] != want {
			t.Errorf("%d + %d + %d = %d in pairs, want %d", a, b, x, got[3*i+1], want)
		}
		if float64(a)+float64(b) <= tensor.Most && got[3*i] != want { // a sum in one go stops at Most at its end
			t.Errorf("%d + %d + %d = %d, want %d", a, b, x, got[3*i], want)
		}
	}
}
