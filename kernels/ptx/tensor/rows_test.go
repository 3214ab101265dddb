package tensor_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/emulator"
	"github.com/pce-engine/pce/kernels/ptx"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// rowCard is an emulated card with the kernels of a variant that RowModule holds and
// memory under the names of their parameters.
type rowCard struct {
	*emulator.Emulator
	t       testing.TB
	module  cuda.Module
	stream  cuda.Stream
	kernels map[string]*ptx.Kernel
	memory  map[string]cuda.Ptr
}

func newRowCard(t testing.TB, v tensor.Variant, o emulator.Options) *rowCard {
	t.Helper()
	c := &rowCard{emulator.New(o), t, 0, 0, map[string]*ptx.Kernel{}, map[string]cuda.Ptr{}}
	m := v.RowModule()
	var err error
	c.module, err = c.Load(m.Text())
	c.check(err)
	c.stream, err = c.NewStream()
	c.check(err)
	for _, k := range m.Kernels {
		c.kernels[k.Name] = k
	}
	return c
}

func (c *rowCard) check(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// put gives a parameter memory with data in it: a slice, of numbers or of records
// of size bytes.
func (c *rowCard) put(name string, data any, size ...int) {
	c.t.Helper()
	var b []byte
	var err error
	switch d := data.(type) {
	case []tensor.Factor:
		b = records(d, size[0])
	case []tensor.Element:
		b = records(d, size[0])
	case []tensor.Sum:
		b = records(d, size[0])
	case []tensor.Group:
		b = records(d, size[0])
	case []tensor.Step:
		b = records(d, size[0])
	case []tensor.Column:
		b = records(d, size[0])
	case []tensor.RowStep:
		b = records(d, size[0])
	case []tensor.Tile:
		b = records(d, size[0])
	case []tensor.Owner:
		b = records(d, size[0])
	case []tensor.Use:
		b = records(d, size[0])
	case []tensor.Input:
		b = records(d, size[0])
	default:
		b, err = binary.Append(nil, binary.LittleEndian, data)
		c.check(err)
	}
	p, err := c.Alloc(max(int64(len(b)), 16))
	c.check(err)
	c.memory[name] = p
	if len(b) > 0 {
		c.check(c.CopyIn(p, b, c.stream))
	}
}

func records[T any](rs []T, size int) []byte {
	var b []byte
	for _, r := range rs {
		b = append(b, tensor.Words(r, size)...)
	}
	return b
}

// control is what a test says in the control words.
type control struct {
	Rows, _                   uint32
	Step, Pseudocount, Scale  float64
	Average, Take, Grid, Fine float32
	Pitch, Vectors, Units, _  uint32
}

// get reads n numbers back.
func get[T any](c *rowCard, name string, n int) []T {
	c.t.Helper()
	out := make([]T, n)
	b := make([]byte, binary.Size(out))
	c.check(c.CopyOut(b, c.memory[name], c.stream))
	c.check(c.Wait(c.stream))
	if _, err := binary.Decode(b, binary.LittleEndian, out); err != nil {
		c.t.Fatal(err)
	}
	return out
}

// launch runs x blocks of threads of a kernel, as many threads as it allows.
func (c *rowCard) launch(name string, x int) {
	c.t.Helper()
	c.check(c.try(name, x))
}

// try is launch with what the card says of the kernel.
func (c *rowCard) try(name string, x int) error {
	c.t.Helper()
	k := c.kernels[name]
	f, _, err := c.Function(c.module, name, 0)
	c.check(err)
	l := cuda.Launch{Function: f, Grid: [3]int{x, 1, 1}, Block: k.Threads}
	for _, p := range k.Params {
		at, ok := c.memory[p.Name]
		if !ok {
			c.t.Fatalf("kernel %s takes %s, which the test does not give", name, p.Name)
		}
		l.Args = append(l.Args, uint64(at))
	}
	c.check(c.Launch(l, c.stream))
	return c.Wait(c.stream)
}

func TestBadRows(t *testing.T) {
	for _, rows := range []int{1, 31, 32, 255, 256, 257, 700} {
		for _, share := range []float64{0, 0.02, 0.5, 1} {
			t.Run(fmt.Sprintf("rows=%d/share=%v", rows, share), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(rows), 1))
				bad, want := make([]uint32, rows+3), []uint32{0}
				for r := range bad {
					bad[r] = 1 // those behind the launch's rows do not count
					if r < rows {
						bad[r] = 0
						if rng.Float64() < share {
							bad[r] = 1
							want = append(want, uint32(r))
						}
					}
				}
				want[0] = uint32(len(want) - 1)
				c := newRowCard(t, tensor.Variant{Block: 4, Major: 8}, emulator.Options{Seed: 3})
				c.put(tensor.ArgControl, control{Rows: uint32(rows)})
				c.put(tensor.ArgBad, bad)
				c.put(tensor.ArgBadRows, make([]uint32, rows+1))
				c.launch(tensor.KernelBadRows, 1)
				if got := get[uint32](c, tensor.ArgBadRows, len(want)); !slices.Equal(got, want) {
					t.Errorf("listed %v, want %v", got, want)
				}
			})
		}
	}
}

func TestRoot(t *testing.T) {
	const rows, width = 300, 4
	rng := rand.New(rand.NewPCG(2, 1))
	sum := tensor.Sum{Val: 64, Exp: 7, Width: width, Units: 1}
	val, exp := make([]float32, 64+rows*width), make([]int32, 7+rows)
	bad, want := make([]uint32, rows), make([]float64, rows)
	for r := range rows {
		x, e := float32(math.Exp(rng.NormFloat64()*5)), int32(rng.IntN(20000)-15000)
		switch r {
		case 0:
			x, e = 1, 0
		case 1:
			x, e = math.Nextafter32(1, 0), 0
		case 2:
			x = math.SmallestNonzeroFloat32
		}
		want[r] = math.Log(float64(x)) + float64(e)*math.Ln2
		if r%5 == 4 {
			x = float32(rng.Float64())
			if r%3 == 0 {
				x = float32(math.Inf(-1))
			}
			bad[r] = 1
			want[r] = (float64(x) + float64(e)) * math.Ln2
		}
		val[64+r*width], exp[7+r] = x, e
	}
	c := newRowCard(t, tensor.Variant{Block: width, Major: 8}, emulator.Options{})
	c.put(tensor.ArgControl, control{Rows: rows})
	c.put(tensor.ArgVal, val)
	c.put(tensor.ArgExp, exp)
	c.put(tensor.ArgBad, bad)
	c.put(tensor.ArgLL, make([]float64, rows))
	c.put(tensor.ArgSums, []tensor.Sum{{}, sum}, tensor.SumSize)
	c.put(tensor.ArgList, []uint32{1})
	c.launch(tensor.KernelRoot, 2)
	for r, got := range get[float64](c, tensor.ArgLL, rows) {
		if w := want[r]; got != w && !(math.Abs(got-w) <= 1e-15*max(1, math.Abs(w))) {
			t.Errorf("row %d: %v, want %v (mantissa %v, exponent %d, marked %d)", r, got, w, val[64+r*width], exp[7+r], bad[r])
		}
	}
}
