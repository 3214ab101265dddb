package tensor_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// TestModes finds the modes of tables with numbers of codes and units on both sides of what
// the warps of a block go through at a time, and fills missing cells with their codes.
func TestModes(t *testing.T) {
	for _, size := range []int{1, 8, 32} {
		for _, wide := range []bool{false, true} {
			t.Run(fmt.Sprintf("size=%d/wide=%v", size, wide), func(t *testing.T) {
				testModes(t, tensor.Variant{Block: size, WideCodes: wide, Major: 8})
			})
		}
	}
}

func testModes(t *testing.T, v tensor.Variant) {
	const rows, space = 130, 133
	rng := rand.New(rand.NewPCG(uint64(v.Block), 21))
	var (
		params        []float32
		codes, taken  []uint32
		modes, owners []uint32
		list          []uint32
		inputs        []tensor.Input
		want          []uint32
		filled        []uint32
	)
	for i, shape := range [][2]int{{1, 1}, {2, 31}, {3, 33}, {4, 32}, {15, 5}, {16, 64}, {17, 40}, {300, 3}} {
		n, units := shape[0], shape[1]
		width := (units + v.Block - 1) / v.Block * v.Block
		in := tensor.Input{
			Table: uint64(room(&params, (n+1)*width, 0)), Codes: uint32(n), Width: uint32(width), Units: uint32(units),
			At: uint32(room(&codes, space, uint32(n+1))), Taken: uint32(room(&taken, space, 0)),
			Modes: uint32(room(&modes, tensor.ModesHead+2*width, 77)),
		}
		if i%3 == 1 {
			in.Exps = uint32(room(&params, (n+1)*width, 0)) - uint32(in.Table)
		}
		room(&want, 0, 77)
		want = append(append(want, modes[len(want):in.Modes]...), uint32(n), 77, 77, 77)
		values, first := make([]uint32, width), make([]uint32, width)
		for u := range width {
			most := float32(0)
			for c := range n + 1 {
				at := int(in.Table) + c*width + u
				x, e := float32(1+rng.IntN(5))/8, 0 // of few values, so that some are equal
				if in.Exps > 0 {
					e = -rng.IntN(4) - 120*rng.IntN(2)
					params[at+int(in.Exps)] = float32(e)
				}
				if u >= units || u%7 == 3 { // all numbers of some units are 0
					x = 0
				}
				if c == n {
					x, e = 1, 0
				}
				params[at] = x
				if x = float32(math.Ldexp(float64(x), e)); c < n && x > most && u < units {
					most, first[u] = x, uint32(c)
				}
			}
			values[u] = math.Float32bits(most)
		}
		want = append(append(want, values...), first...)
		for r := range space {
			cell, unit := rng.IntN(n+1), rng.IntN(units+1)
			codes[int(in.At)+r], taken[int(in.Taken)+r] = uint32(cell), uint32(unit)
		}
		filled = append(filled, codes[len(filled):]...)
		for r := range rows {
			if unit := taken[int(in.Taken)+r]; unit > 0 && codes[int(in.At)+r] == uint32(n) {
				filled[int(in.At)+r] = first[unit-1]
			}
		}
		for run := range (width + 31) / 32 {
			owners = append(owners, uint32(i), uint32(run))
		}
		list = append(list, uint32(i), 1<<31) // the second word is not read
		inputs = append(inputs, in)
	}
	var cells any = codes
	narrow := make([]uint16, len(codes))
	if !v.WideCodes {
		for i, c := range codes {
			narrow[i] = uint16(c)
		}
		cells = narrow
	}
	control := make([]byte, tensor.ControlSize)
	binary.LittleEndian.PutUint32(control[tensor.ControlRows:], rows)
	args := map[string]any{
		tensor.ArgControl: control, tensor.ArgParams: params, tensor.ArgInputs: records(inputs, tensor.InputSize), tensor.ArgList: owners,
		tensor.ArgModes: modes, tensor.ArgCodes: cells, tensor.ArgTaken: taken,
	}
	launchLeaves(t, v, tensor.KernelModes, [3]int{len(owners) / 2, 1, 1}, args)
	if !slices.Equal(modes, want) {
		for i := range want {
			if modes[i] != want[i] {
				t.Fatalf("word %d of modes is %#x, want %#x", i, modes[i], want[i])
			}
		}
	}
	args[tensor.ArgList] = list
	launchLeaves(t, v, tensor.KernelModeCodes, [3]int{len(inputs), (rows + tensor.SampleRows - 1) / tensor.SampleRows, 1}, args)
	for i, c := range narrow {
		if !v.WideCodes {
			codes[i] = uint32(c)
		}
	}
	for i, c := range filled {
		if codes[i] != c {
			t.Fatalf("code %d is %d, want %d", i, codes[i], c)
		}
	}
}

// fill gives tables modes, which differ from all their numbers.
func (l *level) fill() {
	for i := range l.factors {
		f := &l.factors[i]
		if f.Kind != tensor.TableFactor {
			continue
		}
		width := 0
		for _, e := range l.elements {
			if int(e.Factor) <= i && i < int(e.Factor+e.Count) {
				width = int(e.Width)
			}
		}
		f.Modes = uint32(room(&l.modes, tensor.ModesHead+2*width, 0))
		l.modes[f.Modes] = 5
		for u := range width {
			l.modes[int(f.Modes)+tensor.ModesHead+u] = math.Float32bits(0.35 + l.rng.Float32()/10)
		}
	}
	l.modes = append(l.modes, 0) // there may be none
	l.more[tensor.ArgModes] = raw(l.modes)
}

// TestForwardFilled evaluates sums with modes for missing cells.
func TestForwardFilled(t *testing.T) {
	eachShape(t, func(t *testing.T, l *level) {
		l.fill()
		l.run(t, tensor.Filled(tensor.KernelForward), upTo(len(l.groups)), l.tiles64())
		l.checkSums(t)
	})
}

// TestForwardLargest wants the largest terms of sums, also where operands are far apart:
// rows in which one may have vanished are marked.
func TestForwardLargest(t *testing.T) {
	marked, whole := 0, 0
	for _, spread := range []bool{false, true} {
		eachShape(t, func(t *testing.T, l *level) {
			if l.fill(); spread {
				l.spread()
			}
			l.run(t, tensor.Largest(tensor.KernelForward), upTo(len(l.groups)), l.tiles64())
			l.checkTerms(t, func(most, term float64) float64 { return max(most, term) }, 1e-6)
			for r, b := range l.bad[:l.rows] {
				if b != 0 && !spread {
					t.Errorf("row %d is marked", r)
				}
				marked += int(b)
				whole += int(1 - b)
			}
		})
	}
	if marked < 100 || whole < 100 {
		t.Errorf("%d rows marked and %d not; want many of both", marked, whole)
	}
}
