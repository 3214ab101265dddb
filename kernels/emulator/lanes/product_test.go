package lanes

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/kernels/ptx"
)

// operands fills registers with numbers of a type: near each other, of all sizes,
// zeros of both signs, and with a chance of one in 100 what is not finite.
func operands(random *rand.Rand, r *Narrow, t ptx.Type, wild bool) {
	number := func(exponent, bits, infinity uint32) uint32 {
		x := random.Uint32()
		fraction, sign := x&(1<<bits-1), x>>31
		e := random.Uint32N(infinity)
		switch random.IntN(8) {
		case 0:
			e, fraction = 0, 0
		case 1:
			e = 0
		case 2, 3, 4:
			e = infinity/2 + random.Uint32N(12) - 6
		}
		if wild && random.IntN(100) == 0 {
			e, fraction = infinity, fraction*random.Uint32N(2)
		}
		return sign<<exponent<<bits | e<<bits | fraction
	}
	for i := range r {
		switch t {
		case ptx.F16:
			r[i] = number(5, 10, 31)<<16 | number(5, 10, 31)
		case ptx.BF16:
			r[i] = number(8, 7, 255)<<16 | number(8, 7, 255)
		default:
			r[i] = number(8, 23, 255)
		}
	}
}

// TestMultiply compares what the assembly multiplies with the functions in Go, for all
// kinds of operands and ways to add, with results written over operands.
func TestMultiply(t *testing.T) {
	for _, set := range Sets() {
		if set.multiply == nil {
			continue
		}
		for _, kind := range []struct {
			k int
			t ptx.Type
		}{{8, ptx.TF32}, {16, ptx.F16}, {8, ptx.F16}, {16, ptx.BF16}} {
			for _, m := range []MMA{{}, {16, 2}, {8, 1}, {4, 0}, {16, maxExtra}, {8, 7}} {
				t.Run(fmt.Sprintf("%s/k=%d/%s/%v", set.Name, kind.k, kind.t, m), func(t *testing.T) {
					random := rand.New(rand.NewPCG(1, uint64(kind.k)))
					fast, plain := m.Multiplier(set, kind.k, kind.t), m.Multiplier(generic, kind.k, kind.t)
					refused := 0
					for round := range 300 {
						var from [10]Narrow
						wild := round%3 == 0
						for i := range 6 {
							operands(random, &from[i], kind.t, wild)
						}
						for i := 6; i < 10; i++ {
							operands(random, &from[i], ptx.F32, wild)
						}
						if round%11 == 0 && kind.t != ptx.F16 { // all below the normal range, products a little
							for i := range from {
								for lane := range from[i] {
									x := random.Uint32()
									if from[i][lane] = x&0x807fffff | (52+x>>8%4)<<23; i >= 6 {
										from[i][lane] = x & 0x80ffffff
									}
								}
							}
						}
						if round%7 == 0 { // sums that overflow
							for i := range from[6] {
								from[6][i] = math.Float32bits(math.MaxFloat32)
							}
						}
						product := func(f func(*Product)) ([10]Narrow, [4]Narrow) {
							r, to := from, [4]Narrow{}
							p := &Product{Left: [4]*Narrow{&r[0], &r[1], &r[2], &r[3]}, Right: [2]*Narrow{&r[4], &r[5]},
								From: [4]*Narrow{&r[6], &r[7], &r[8], &r[9]}, To: [4]*Narrow{&to[0], &to[1], &to[2], &to[3]}}
							switch round % 3 {
							case 1:
								p.To = p.From
							case 2:
								p.To = [4]*Narrow{&r[9], &r[0], &r[6], &r[5]}
							}
							f(p)
							return r, to
						}
						a, x := product(fast)
						b, y := product(plain)
						if a != b || x != y {
							for i := range a {
								for lane := range a[i] {
									if a[i][lane] != b[i][lane] {
										t.Fatalf("round %d: register %d, lane %d is %#x, want %#x", round, i, lane, a[i][lane], b[i][lane])
									}
								}
							}
							t.Fatalf("round %d: %x, want %x", round, x, y)
						}
						if wild {
							refused++
						}
					}
					if refused == 0 {
						t.Error("no operands with infinities")
					}
				})
			}
		}
	}
}
