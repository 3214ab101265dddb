package simt_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/kernels/simt"
)

// digits is the precision of exact values, in bits.
const digits = 128

// ulps returns how far x is from an exact value in units of the last place of the value.
func ulps(t simt.Type, x float64, exact *big.Float) float64 {
	e := exact.MantExp(nil)
	mantissa, least := 53, -1074
	if t == simt.F32 {
		mantissa, least = 24, -149
	}
	unit := math.Max(math.Ldexp(1, max(e-mantissa, least)), math.Ldexp(1, least))
	d := new(big.Float).Sub(new(big.Float).SetFloat64(x), exact)
	f, _ := d.Quo(d, big.NewFloat(unit)).Float64()
	return math.Abs(f)
}

// exactExp2 is 2^x to many digits: 2^floor(x) · e^(r ln 2) by its series.
func exactExp2(x float64) *big.Float {
	k := math.Floor(x)
	r := new(big.Float).SetPrec(digits).SetFloat64(x - k)
	r.Mul(r, ln2())
	sum, term := big.NewFloat(1).SetPrec(digits), big.NewFloat(1).SetPrec(digits)
	for i := 1; i < 36; i++ {
		term.Mul(term, r)
		term.Quo(term, new(big.Float).SetInt64(int64(i)))
		sum.Add(sum, term)
	}
	return sum.SetMantExp(sum, int(k))
}

func ln2() *big.Float {
	f, _, err := big.ParseFloat("0.693147180559945309417232121458176568075500134360255254120680009493393621969694715605863326996418687", 10, digits, big.ToNearestEven)
	if err != nil {
		panic(err)
	}
	return f
}

// exactLog is the natural logarithm of x·2^power to many digits: the exponent times ln 2, and 2 artanh((m-1)/(m+1)).
func exactLog(x float64, power int) *big.Float {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	num := new(big.Float).SetPrec(digits).SetFloat64(m)
	den := new(big.Float).SetPrec(digits).SetFloat64(m)
	one := big.NewFloat(1)
	s := num.Sub(num, one)
	s.Quo(s, den.Add(den, one))
	square := new(big.Float).SetPrec(digits).Mul(s, s)
	sum, odd := new(big.Float).SetPrec(digits), new(big.Float).SetPrec(digits).Set(s)
	for i := range 36 {
		sum.Add(sum, new(big.Float).SetPrec(digits).Quo(odd, new(big.Float).SetInt64(int64(2*i+1))))
		odd.Mul(odd, square)
	}
	sum.Mul(sum, big.NewFloat(2))
	return sum.Add(sum, new(big.Float).Mul(ln2(), new(big.Float).SetInt64(int64(e+power))))
}

// TestExpansions compares Exp2 and logarithms with many digits, over their ranges and where they
// change form.
func TestExpansions(t *testing.T) {
	count := 600
	if testing.Short() {
		count = 120
	}
	for _, typ := range []simt.Type{simt.F32, simt.F64} {
		b := simt.NewBuilder("math")
		x := b.Load(b.Input("x", typ, simt.Columns, 1), 0)
		powers := []int{0, -97, 97}
		columns := 2 + 2*len(powers)
		out := b.Output("y", typ, simt.Columns, columns)
		b.Store(out, 0, b.Exp2(x))
		b.Store(out, 1, b.Log2Normal(x))
		for i, power := range powers {
			b.Store(out, 2+2*i, b.Log(x, power))
			b.Store(out, 3+2*i, b.LogNormal(x, power))
		}
		m, err := b.Module()
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(7, uint64(typ)))
		round := func(x float64) float64 { return x }
		span, emin, lowest := 1080.0, -1022, -1075
		if typ == simt.F32 {
			round = func(x float64) float64 { return float64(float32(x)) }
			span, emin, lowest = 155, -126, -150
		}
		xs := []float64{0x1p97, 0x1p-97, 0x1.000002p97, 0x1.fffffep-98, 0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), -1, 1, 2, 0.5, math.Ldexp(1, emin), math.Ldexp(1, emin-2), round(math.Nextafter(math.Sqrt2, 2)), round(math.Sqrt2 / 2), round(math.Sqrt2), 0.49999999, -0.5, 1e30, 127, 128, 1023, 1024, -150, -149, -1075, -1074}
		for range count {
			xs = append(xs, round((rng.Float64()*2-1)*span), round(math.Ldexp(1+rng.Float64(), int(rng.Float64()*2*span-span))), round(1+(rng.Float64()-0.5)*math.Ldexp(1, -rng.IntN(20))))
		}
		n := len(xs)
		var in, res any
		var at func(i int) float64
		if typ == simt.F32 {
			xf, yf := make([]float32, n), make([]float32, columns*n)
			for i := range xs {
				xs[i] = round(xs[i])
				xf[i] = float32(xs[i])
			}
			in, res, at = xf, yf, func(i int) float64 { return float64(yf[i]) }
		} else {
			yf := make([]float64, columns*n)
			in, res, at = xs, yf, func(i int) float64 { return yf[i] }
		}
		p, err := simt.Compile(m, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Run(t.Context(), 0, n, []any{in}, []any{res}); err != nil {
			t.Fatal(err)
		}
		worst := [3]float64{}
		top := math.Ldexp(1, 1023)
		if typ == simt.F32 {
			top = math.Ldexp(1, 127)
		}
		for i, x := range xs {
			e := at(i)
			switch want := math.Exp2(x); {
			case x != x || math.IsInf(want, 1) || want > 2*top*(1-1e-9):
				if !(e == want || want > 2*top*(1-1e-9) && math.IsInf(e, 1) || x != x && e != e) {
					t.Errorf("%v: 2^%v is %v, want %v", typ, x, e, want)
				}
			case x < float64(lowest):
				if e != 0 {
					t.Errorf("%v: 2^%v is %v, want 0", typ, x, e)
				}
			default:
				worst[0] = math.Max(worst[0], ulps(typ, e, exactExp2(x)))
			}
			for k, power := range powers {
				l, normal, two := at((2+2*k)*n+i), at((3+2*k)*n+i), at(n+i)
				isNormal := x >= math.Ldexp(1, emin)
				switch want := math.Log(x); {
				case x == 0 || x < 0 || x != x || math.IsInf(x, 1):
					if !(l == want || want != want && l != l) {
						t.Errorf("%v: log %v·2^%d is %v, want %v", typ, x, power, l, want)
					}
					continue
				case x == math.Ldexp(1, -power):
					if l != 0 || power == 0 && two != 0 {
						t.Errorf("%v: logarithms of %v·2^%d are %v and %v, want 0", typ, x, power, l, two)
					}
				default:
					exact := exactLog(x, power)
					worst[1] = math.Max(worst[1], ulps(typ, l, exact))
					if isNormal && power == 0 {
						worst[2] = math.Max(worst[2], ulps(typ, two, exact.Quo(exact, ln2())))
					}
				}
				if isNormal && normal != l {
					t.Errorf("%v: LogNormal of %v·2^%d is %v, Log %v", typ, x, power, normal, l)
				}
			}
		}
		t.Logf("%v: errors of 2^x, log x and log2 x up to %.3g, %.3g and %.3g units", typ, worst[0], worst[1], worst[2])
		if !(worst[0] <= simt.Exp2Error && worst[1] <= simt.LogError && worst[2] <= simt.Log2Error) {
			t.Errorf("%v: errors of 2^x, log x and log2 x up to %v, %v and %v units, want %v, %v and %v", typ, worst[0], worst[1], worst[2], simt.Exp2Error, simt.LogError, simt.Log2Error)
		}
	}
}
