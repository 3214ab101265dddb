package main

import (
	"math"

	. "github.com/mmcloughlin/avo/operand"
)

// sigmoidWide computes what package math computes where there are fused multiply-adds, in its order, for eight scores at a
// time: the nearest whole power of two is taken off, a sixteenth of the rest goes through a Taylor series of e^x - 1, which is
// squared back four times, and the exponent is put in place. Powers up to the limit have neither overflow nor denormals.
var sigmoidWide = routine{
	"sigmoid512", "(scores, out *float64, n int, minus float64) int",
	"writes 1/(1+exp(minus*score)) for n scores, a multiple of 8, and returns for how many: it ends before eight of which one is beyond sigmoidLimit or not a number.",
	func(a *asm) {
		scores, out, n := a.param("scores"), a.param("out"), a.param("n")
		splat := func(name string, x float64) wide {
			bits := math.Float64bits(x)
			to := a.ZMM()
			a.VBROADCASTSD(a.constant(name, uint32(bits), uint32(bits>>32)), to)
			return to
		}
		minus := a.ZMM()
		low := a.XMM()
		a.Load(a.Param("minus"), low)
		a.VBROADCASTSD(low, minus)
		magnitude := splat("magnitude", math.Float64frombits(1<<63-1))
		limit, log2e := splat("limit", 700), splat("log2e", math.Log2E)
		upper, lower := splat("ln2upper", 0.69314718055966295651160180568695068359375), splat("ln2lower", 0.28235290563031577122588448175013436025525412068e-12)
		sixteenth, bias := splat("sixteenth", 0.0625), splat("bias", math.Float64frombits(1023))
		one, two, half := splat("one", 1), splat("two", 2), splat("half", 0.5)
		series := []wide{
			splat("series7", 1.9841269841269841270e-4), splat("series6", 1.3888888888888888889e-3), splat("series5", 8.3333333333333333333e-3),
			splat("series4", 4.1666666666666666667e-2), splat("series3", 1.6666666666666666667e-1), half, one,
		}
		first := splat("series8", 2.4801587301587301587e-5)
		done := a.GP64()
		a.XORQ(done, done)
		a.Label("scores")
		a.CMPQ(done, n)
		a.JGE(LabelRef("end"))
		x, t, p, e := a.ZMM(), a.ZMM(), a.ZMM(), a.YMM()
		a.VMULPD(Mem{Base: scores, Index: done, Scale: 8}, minus, x)
		k := a.K()
		a.VANDPD(x, magnitude, t)
		a.VCMPPD(Imm(2), limit, t, k) // at most the limit, which what is not a number is not
		a.KORTESTB(k, k)
		a.JCC(LabelRef("end"))
		a.VMULPD(log2e, x, t)
		a.VCVTPD2DQ(t, e)
		a.VCVTDQ2PD(e, t)
		a.VFNMADD231PD(upper, t, x)
		a.VFNMADD231PD(lower, t, x)
		a.VMULPD(sixteenth, x, x)
		a.VMOVAPD(first, p)
		for _, c := range series {
			a.VFMADD213PD(c, x, p)
		}
		a.VMULPD(p, x, x)
		for range 3 {
			a.VADDPD(two, x, p)
			a.VMULPD(p, x, x)
		}
		a.VADDPD(two, x, p)
		a.VFMADD213PD(one, p, x)
		a.VPMOVSXDQ(e, t)
		a.VPADDQ(bias, t, t)
		a.VPSLLQ(Imm(52), t, t)
		a.VMULPD(t, x, x)
		a.VADDPD(one, x, x)
		a.VDIVPD(x, one, x)
		a.VMOVUPD(x, Mem{Base: out, Index: done, Scale: 8})
		a.ADDQ(Imm(8), done)
		a.JMP(LabelRef("scores"))
		a.Label("end")
		a.Store(done, a.ReturnIndex(0))
		a.ret()
	},
}
