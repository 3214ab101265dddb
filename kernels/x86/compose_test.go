package x86

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/simt/simttest"
)

// TestComposed looks up in tables by what another table has, on both sides of the sizes from which they are joined, by
// indices outside of both and where a condition does not hold; a module that is not joined stays the same.
func TestComposed(t *testing.T) {
	needCode(t)
	rng := rand.New(rand.NewPCG(5, 1))
	index := []int32{math.MinInt32, -2, -1, 300, math.MaxInt32}
	for i := range int32(260) {
		index = append(index, i)
	}
	holds := make([]float32, len(index))
	for i := range holds {
		if i%3 == 1 {
			holds[i] = float32(math.NaN())
		}
	}
	for _, typ := range []simt.Type{simt.F32, simt.F64, simt.I32, simt.U8} {
		for _, n := range []int{2, 16, 17, 32, 33, 70, maxJoined, maxJoined + 1} {
			for _, form := range []string{"gather", "select", "select outside", "read elsewhere", "bin read elsewhere", "select of two", "chain", "branch", "constant first"} {
				b := simt.NewBuilder("tables")
				code, ok := b.Input("code", simt.I32, simt.Columns, 1), b.Input("holds", simt.F32, simt.Columns, 1)
				out := b.Output("values", typ, simt.Columns, 5)
				also := b.Output("bins", simt.I32, simt.Columns, 1)
				table := func(typ simt.Type, n, below int) int {
					bits := make([]uint64, n)
					for i := range bits {
						bits[i] = rng.Uint64N(uint64(below))
					}
					return b.Table(typ, bits)
				}
				x := b.Load(ok, 0)
				cond := b.Binary(simt.Eq, x, x)
				bin := b.Gather(table(simt.I32, n, 45), b.Load(code, 0)) // some are beyond all leaves
				switch form {
				case "select":
					bin = b.Select(cond, bin, b.Int(simt.I32, 39))
				case "select outside":
					bin = b.Select(cond, bin, b.Int(simt.I32, -7))
				case "constant first":
					bin = b.Select(cond, b.Int(simt.I32, 3), bin)
				case "read elsewhere":
					bin = b.Select(cond, bin, b.Int(simt.I32, 39))
					b.Store(also, 0, bin)
				case "bin read elsewhere":
					b.Store(also, 0, bin)
					bin = b.Select(cond, bin, b.Int(simt.I32, 39))
				case "select of two":
					bin = b.Select(cond, bin, b.Load(code, 0))
				case "chain":
					bin = b.Gather(table(simt.I32, n, 45), bin)
				}
				for k := range 5 {
					look := func() simt.Value { return b.Gather(table(typ, []int{40, 40, 33, 17, 40}[k], 200), bin) }
					if form == "branch" && k == 2 {
						first := look()
						b.Store(out, k, b.If(cond, func() []simt.Value { return []simt.Value{look()} }, func() []simt.Value { return []simt.Value{first} })[0])
						continue
					}
					b.Store(out, k, look())
				}
				if form != "read elsewhere" && form != "bin read elsewhere" {
					b.Store(also, 0, b.Int(simt.I32, 1))
				}
				m := module(t, b)
				for _, set := range sets() {
					name := fmt.Sprintf("%s, %v by %d, %s", set, typ, n, form)
					s := shapeOf(m, set)
					joined := composed(m, s)
					if err := joined.Verify(); err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					large := !s.small(&simt.Table{Type: simt.I32, Bits: make([]uint64, n)}) && n <= maxJoined
					if want := !s.evex && large && slices.Contains([]string{"gather", "select", "select outside", "chain"}, form); want != (joined != m) {
						t.Errorf("%s: joined %v, want %v", name, joined != m, want)
					}
					p, err := Compile(m, 1, set)
					if err != nil {
						t.Fatal(err)
					}
					run, err := simt.Compile(m, 1)
					if err != nil {
						t.Fatal(err)
					}
					_, got := simttest.Buffers(rand.New(rand.NewPCG(1, 1)), m, len(index))
					_, want := simttest.Buffers(rand.New(rand.NewPCG(1, 1)), m, len(index))
					if err := p.Run(t.Context(), 0, len(index), []any{index, holds}, got); err != nil {
						t.Fatal(err)
					}
					if err := run.Run(t.Context(), 0, len(index), []any{index, holds}, want); err != nil {
						t.Fatal(err)
					}
					for o := range want {
						for i := range len(index) * m.Outputs[o].Width {
							if g, w := simttest.ElementBits(got[o], i), simttest.ElementBits(want[o], i); g != w {
								t.Fatalf("%s: row %d, column %d of output %d: %#x, want %#x", name, i%len(index), i/len(index), o, g, w)
							}
						}
					}
					p.Free()
				}
			}
		}
	}
}
