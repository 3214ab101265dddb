package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/pce-engine/pce/kernels/emulator"
	"github.com/pce-engine/pce/kernels/ptx"
)

// The emulator's assumptions on how matrix instructions add.
var (
	ampere = emulator.MMA{Group: 8, ExtraBits: 1}
	hopper = emulator.MMA{Group: 16, ExtraBits: 2}
)

// candidates are ways to add that products are compared with: what the emulator
// assumes of some card, and others, so that a wrong assumption comes with a right one.
var candidates = []emulator.MMA{
	{}, ampere, hopper, {Group: 4, ExtraBits: 0}, {Group: 4, ExtraBits: 1}, {Group: 4, ExtraBits: 2}, {Group: 8, ExtraBits: 0}, {Group: 8, ExtraBits: 2},
	{Group: 8, ExtraBits: 3}, {Group: 16, ExtraBits: 0}, {Group: 16, ExtraBits: 1}, {Group: 16, ExtraBits: 3},
}

// assumed is what the emulator assumes of a card of a compute capability.
func assumed(major int) emulator.MMA {
	if major >= 9 {
		return hopper
	}
	return ampere
}

// productKernel multiplies fragments of type t, one product per block of one warp: words
// of left [block][lane][4], right [block][lane][2], sums [block][lane][4].
func productKernel(t ptx.Type) *ptx.Kernel {
	b := ptx.NewKernel("product", 32, 0)
	left, right, sums := b.Pointer("left"), b.Pointer("right"), b.Pointer("sums")
	lane := b.Add(b.Mul(b.Special("%ctaid.x"), 32), b.Special("%tid.x"))
	x, y := b.LoadN(ptx.B32, 4, b.At(left, lane, 16), 0), b.LoadN(ptx.B32, 2, b.At(right, lane, 8), 0)
	at := b.At(sums, lane, 16)
	acc := b.LoadN(ptx.F32, 4, at, 0)
	b.MMA(t, acc, x, y)
	b.StoreN(ptx.F32, at, 0, acc)
	return b.Kernel()
}

// vectors are the operands of products.
type vectors struct {
	t                 ptx.Type
	n                 int
	left, right, sums []uint32
}

// newVectors draws operands whose exponents are spread, so that sums lose bits, and
// whose sums often cancel. TF32 operands have bits that the instruction is to ignore.
func newVectors(t ptx.Type, n int) *vectors {
	rng := rand.New(rand.NewPCG(uint64(t), 11))
	v := &vectors{t: t, n: n}
	number := func(spread int) float64 {
		return (1 + rng.Float64()) * math.Ldexp(float64(1-2*rng.IntN(2)), rng.IntN(2*spread+1)-spread)
	}
	operand := func() uint32 {
		if t == ptx.TF32 {
			return math.Float32bits(float32(number(12)))
		}
		// Halves: a sign, an exponent of -7 to 7, ten bits.
		half := func() uint32 { return uint32(rng.IntN(2)<<15 | (8+rng.IntN(15))<<10 | rng.IntN(1<<10)) }
		return half()<<16 | half()
	}
	for range 32 * n {
		for range 4 {
			v.left = append(v.left, operand())
			v.sums = append(v.sums, math.Float32bits(float32(number(14))))
		}
		for range 2 {
			v.right = append(v.right, operand())
		}
	}
	return v
}

// multiply returns the sums after the products.
func (p *probe) multiply(v *vectors) ([]uint32, error) {
	k, err := p.load(productKernel(v.t))
	if err != nil {
		return nil, err
	}
	left, err := p.array(v.left)
	if err != nil {
		return nil, err
	}
	right, err := p.array(v.right)
	if err != nil {
		return nil, err
	}
	sums, err := p.array(v.sums)
	if err != nil {
		return nil, err
	}
	if err := p.launch(k, v.n, uint64(left), uint64(right), uint64(sums)); err != nil {
		return nil, err
	}
	out, err := p.words(sums, len(v.sums))
	if err != nil {
		return nil, err
	}
	return out, p.free(left, right, sums)
}

// products compares the card's matrix products bit by bit with those of emulators that
// add in different ways.
func (p *probe) products() error {
	for _, kind := range []struct {
		name string
		t    ptx.Type
	}{{"TF32", ptx.TF32}, {"float16", ptx.F16}} {
		v := newVectors(kind.t, p.size(2000, 20))
		got, err := p.multiply(v)
		if err != nil {
			return err
		}
		best, least := emulator.MMA{}, len(got)+1
		wrong := 0
		for _, c := range candidates {
			e := emulator.New(emulator.Options{Major: p.card.Major, Minor: p.card.Minor, MMA: c})
			model := &probe{drv: e, card: e.Card()}
			if model.stream, err = e.NewStream(); err != nil {
				return err
			}
			want, err := model.multiply(v)
			if err != nil {
				return err
			}
			if err := e.Close(); err != nil {
				return err
			}
			differ := 0
			for i := range got {
				if got[i] != want[i] {
					differ++
				}
			}
			if differ < least {
				best, least = c, differ
			}
			if c == assumed(p.card.Major) {
				wrong = differ
			}
		}
		note := fmt.Sprintf("of %d sums, from groups of %d with %d more bits, as the emulator assumes", len(got), assumed(p.card.Major).Group, assumed(p.card.Major).ExtraBits)
		if wrong > 0 {
			note += fmt.Sprintf("; NOT so on this card, nearest are groups of %d with %d more bits, off in %d", best.Group, best.ExtraBits, least)
		}
		if err := p.read("matrix products of "+kind.name+" that differ", float64(wrong), "", "%s", note); err != nil {
			return err
		}
	}
	return nil
}

// functionKernel applies one function to n numbers, in place.
func functionKernel(f func(b *ptx.Builder, x ptx.Value) ptx.Value) *ptx.Kernel {
	b := ptx.NewKernel("function", 256, 0)
	at, n := b.Pointer("at"), b.Param("n", ptx.U32)
	i := b.Add(b.Mul(b.Special("%ctaid.x"), 256), b.Special("%tid.x"))
	b.ReturnIf(b.Ge(i, n))
	p := b.At(at, i, 4)
	b.Store(ptx.F32, p, 0, f(b, b.Load(ptx.F32, p, 0)))
	return b.Kernel()
}

// special is a function of the special function unit with what the emulator assumes of
// it, which is what NVIDIA's manual of PTX promises.
type special struct {
	name    string
	emit    func(b *ptx.Builder, x ptx.Value) ptx.Value
	exact   func(x float64) float64
	draw    func(rng *rand.Rand) float64
	allowed func(x, y float64) float64 // the error that is assumed at most, of y at x
	where   string                     // where it is counted in units in the last place
}

// unit is a unit in the last place of a float32.
func unit(y float64) float64 {
	y = max(math.Abs(y), 0x1p-126)
	return math.Ldexp(1, math.Ilogb(y)-23)
}

var specials = []special{
	{
		name: "ex2", emit: func(b *ptx.Builder, x ptx.Value) ptx.Value { return b.Ex2(x) }, exact: math.Exp2,
		draw:    func(rng *rand.Rand) float64 { return -125 + 250*rng.Float64() },
		allowed: func(_, y float64) float64 { return 2.5 * unit(y) },
		where:   "from -125 to 125",
	},
	{
		name: "lg2", emit: func(b *ptx.Builder, x ptx.Value) ptx.Value { return b.Lg2(x) }, exact: math.Log2,
		draw: func(rng *rand.Rand) float64 {
			if rng.IntN(2) == 0 { // where results are small
				return 0.5 + 1.5*rng.Float64()
			}
			return math.Exp2(-125 + 250*rng.Float64())
		},
		allowed: func(x, y float64) float64 {
			if x > 0.5 && x < 2 {
				return 0x1p-22 + unit(y)/2
			}
			return 2.5 * unit(y)
		},
		where: "outside of 0.5 to 2",
	},
}

// functions compares ex2 and lg2 with float64 on a million arguments each, and at the
// ends of their range.
func (p *probe) functions() error {
	for _, s := range specials {
		rng := rand.New(rand.NewPCG(3, uint64(len(s.name))))
		args := []uint32{}
		for _, x := range []float32{0, 1, 2, 0.5, -1, 126, 127} {
			if s.name == "ex2" || x > 0 {
				args = append(args, math.Float32bits(x))
			}
		}
		for len(args) < p.size(1_000_000, 5000) {
			args = append(args, math.Float32bits(float32(s.draw(rng))))
		}
		k, err := p.load(functionKernel(s.emit))
		if err != nil {
			return err
		}
		at, err := p.array(args)
		if err != nil {
			return err
		}
		if err := p.launch(k, (len(args)+255)/256, uint64(at), uint64(len(args))); err != nil {
			return err
		}
		got, err := p.words(at, len(args))
		if err != nil {
			return err
		}
		if err := p.free(at); err != nil {
			return err
		}
		if err := p.judge(&s, args, got); err != nil {
			return err
		}
	}
	return nil
}

// judge prints how many results are further from the exact ones than is assumed, and
// the worst error in units in the last place.
func (p *probe) judge(s *special, args, got []uint32) error {
	wrong, worst, at := 0, 0.0, float32(0)
	units := 0.0
	for i, a := range args {
		x, y := math.Float32frombits(a), float64(math.Float32frombits(got[i]))
		want := s.exact(float64(x))
		off := math.Abs(y - want)
		share := off / s.allowed(float64(x), want)
		if !(share <= 1) {
			wrong++
		}
		if !(share <= worst) && !math.IsNaN(worst) {
			worst, at = share, x
		}
		if !(off/unit(want) <= units) && !(float64(x) > 0.5 && x < 2 && s.name == "lg2") {
			units = off / unit(want)
		}
	}
	note := fmt.Sprintf("of %d, by more than the emulator assumes", len(args))
	if wrong > 0 {
		note += fmt.Sprintf("; NOT so on this card, the worst by %.3g times at %v", worst, at)
	}
	if err := p.read("results of "+s.name+" that are off", float64(wrong), "", "%s", note); err != nil {
		return err
	}
	if math.IsNaN(units) || math.IsInf(units, 0) {
		return nil // the line before says where
	}
	return p.read("worst error of "+s.name, units, "ulp", "%s", s.where)
}
