package tensor_test

import (
	"fmt"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/kernels/emulator"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// TestLeafCounts compares the counts of large tables with float32 sums in the order of
// uses and rows, to the bit: how many rows are in flight decides nothing.
func TestLeafCounts(t *testing.T) {
	for i, c := range []struct {
		rows, codes int
		shift       uint32
		missing     float64
	}{{1, 300, 1, 0}, {127, 300, 1, 0.2}, {128, 257, 4, 0}, {129, 260, 2, 0.9}, {300, 257, 1, 0.1}, {20, 300, 1, 1}} {
		t.Run(fmt.Sprintf("rows=%d/codes=%d", c.rows, c.codes), func(t *testing.T) {
			w := newLeaves(4, c.rows, uint64(40+i), leafInput{circuit.Categorical{Categories: c.codes}, 37, 2, c.missing})
			w.shift = c.shift
			in := &w.inputs[0]
			want := make([]float32, int(in.Codes)*int(in.Width))
			// Runs of a few codes that all belong to one warp, so that one is added again
			// while its count is on the way.
			for n, use := range w.uses {
				for r := range w.rows {
					if code := &w.Codes[int(use.At)+r]; r%5 < 3 && *code < uint16(in.Codes) {
						*code = uint16((n + r%3*r%2) * tensor.LeafParts * 4)
					}
				}
			}
			for _, use := range w.uses {
				for r := range w.rows {
					if code := uint32(w.Codes[int(use.At)+r]); code < in.Codes {
						for u := range in.Units {
							want[code*in.Width+u] += w.Kept[int(use.Kept)+r*int(use.Width)+int(u)]
						}
					}
				}
			}
			parts := w.parts()
			w.launch(t, tensor.KernelLeafGather, [3]int{len(parts) / 2, 1, 1}, map[string]any{tensor.ArgList: parts})
			for code := range in.Codes {
				for u := range in.Units {
					if got, want := w.Counts[uint32(in.Counts)+code*in.Width+u], want[code*in.Width+u]; got != want {
						t.Fatalf("code %d unit %d: %v, want %v", code, u, got, want)
					}
				}
			}
		})
	}
}

// TestLeafLatency wants the flows of four rows of a warp's codes in flight, with their
// counts, which are in shared memory where there are few, and four counts where they are
// added up.
func TestLeafLatency(t *testing.T) {
	const size, rows = 32, 512
	v := tensor.Variant{Block: size, Major: 8}
	for _, c := range []struct {
		name, kernel string
		codes        int
		shift        uint32
		want, shared int
	}{
		// A warp has one code and 8 rows of each of 16 tiles: 16 rounds over tiles with 2
		// each over its rows, and one each over uses, clearing, adding up and flows.
		{"a code for each warp", tensor.KernelLeafCount, 4, 0, 16*(1+2) + 4, 8},
		// A warp has up to 79 codes: 20 rounds to clear them and 20 to add them up. The
		// busiest one has 2 for its rows of each of 4 tiles.
		{"tokens", tensor.KernelLeafGather, 5000, 4, 4*(1+2) + 20 + 20 + 1, 4},
	} {
		w := newLeaves(size, rows, 3, leafInput{circuit.Categorical{Categories: c.codes}, size, 1, 0})
		for r := range rows {
			w.Codes[int(w.inputs[0].At)+r] = uint16(r * 613 % c.codes)
		}
		w.shift = c.shift
		list := w.List
		if c.shift > 0 {
			list = w.parts()
		}
		var work string
		try := func(o emulator.Options) error {
			w := w.copy()
			em, err := tryLeaves(t, o, v, c.kernel, [3]int{len(list) / 2, 1, 1}, w.args(map[string]any{tensor.ArgList: list}))
			work = describe(em.Counts()[c.kernel])
			return err
		}
		got := rounds(t, try)
		if got != c.want {
			t.Errorf("%s: %d rounds of loops, want %d", c.name, got, c.want)
		}
		if err := try(emulator.Options{}); err != nil {
			t.Fatal(err)
		}
		for _, k := range v.LeafModule().Kernels {
			if k.Name == c.kernel && inFlight(k, "shared") != c.shared {
				t.Errorf("%s: %d loads of shared memory in flight, want %d", c.name, inFlight(k, "shared"), c.shared)
			}
		}
		t.Logf("%s: %d rounds; %s", c.name, got, work)
	}
}
