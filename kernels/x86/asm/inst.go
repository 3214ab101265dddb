package asm

// Form is which operands an instruction has and how they are encoded.
type Form uint8

// The forms.
const (
	FormLoad    Form = iota // reg = f(r/m)
	FormStore               // r/m = f(reg)
	FormTwo                 // reg = f(v, r/m)
	FormShift               // v = f(r/m), with a digit in place of reg
	FormBlend               // reg = f(v, r/m, the register in the immediate)
	FormGather              // reg = f(r/m); VEX has the mask in v
	FormScatter             // r/m = f(reg), with indices as FormGather
)

// Form returns which operands the instruction has.
func (in *Inst) Form() Form { return in.form }

// HasImm reports whether the instruction ends with an immediate byte of its caller's.
func (in *Inst) HasImm() bool { return in.imm }

// Broadcasts reports whether the instruction can read one element of a number of bytes for all lanes.
func (in *Inst) Broadcasts(bytes uint8) bool { return in.elem == bytes }

// HasEVEX reports whether the instruction has a form with EVEX prefix.
func (in *Inst) HasEVEX() bool { return in.evex }

// Masks reports whether the result is a mask register.
func (in *Inst) Masks() bool { return in.class == toMask || in.class == masksOnly }

// class is what the registers of an instruction are, where they are not all vectors.
type class uint8

const (
	vectors   class = iota
	fromGPR         // the r/m operand is a general register
	toGPR           // reg is a general register
	toMask          // reg is a mask register
	masksOnly       // all are mask registers
)

// Inst is a vector instruction.
type Inst struct {
	Name           string // in Go's assembler
	m, pp, code    byte
	vw, ew         byte // the bit W of VEX and EVEX
	digit          byte
	form           Form
	class          class
	imm            bool
	vex, evex      bool
	elem           byte // bytes of an element that EVEX can broadcast; 0: none
	shrinkRM       byte // the r/m operand is smaller than the width, as a power of 2
	shrinkReg      byte // reg is
	scalar         byte // bytes of the r/m operand in memory, where the width does not say it
	suffix         bool // Go's assembler wants the width as the name's last letter
	widths         byte // those that it has, a bit for each
	noMem, onlyMem bool
}

// Maps of opcodes and prefixes.
const (
	m0F   = 1
	m0F38 = 2
	m0F3A = 3

	p66 = 1
	pF3 = 2
	pF2 = 3
)

const xy, xyz, onlyX, onlyY = 3, 7, 1, 2

type mod func(*Inst)

func inst(name string, m, pp, code byte, f Form, mods ...mod) *Inst {
	in := &Inst{Name: name, m: m, pp: pp, code: code, form: f, vex: true, widths: xy}
	for _, mod := range mods {
		mod(in)
	}
	all = append(all, in)
	return in
}

// all lists the instructions for the tests.
var all []*Inst

func immediate(in *Inst) { in.imm = true }

func of(widths byte) mod { return func(in *Inst) { in.widths = widths } }

// w1 sets W in both prefixes.
func w1(in *Inst) { in.vw, in.ew = 1, 1 }

// ps and pd allow EVEX, with elements of 4 or 8 bytes; the latter sets its bit W.
func ps(in *Inst) { in.evex, in.elem, in.widths = true, 4, in.widths|4 }
func pd(in *Inst) { in.evex, in.elem, in.ew, in.widths = true, 8, 1, in.widths|4 }

// plain allows EVEX without broadcast.
func plain(in *Inst) { in.evex, in.widths = true, in.widths|4 }

// only takes VEX away.
func only(in *Inst) { in.vex = false }

// wide and wideQ are for EVEX alone, with elements of 4 or 8 bytes.
func wide(in *Inst)  { ps(in); only(in) }
func wideQ(in *Inst) { pd(in); only(in) }

func half(in *Inst)          { in.shrinkRM = 1 }
func quarter(in *Inst)       { in.shrinkRM = 2 }
func halfReg(in *Inst)       { in.shrinkReg = 1 }
func sized(n byte) mod       { return func(in *Inst) { in.scalar = n } }
func digit(d byte) mod       { return func(in *Inst) { in.digit = d } }
func registers(k class) mod  { return func(in *Inst) { in.class = k } }
func lettered(in *Inst)      { in.suffix = true }
func registersOnly(in *Inst) { in.noMem = true }
func memoryOnly(in *Inst)    { in.onlyMem = true }
func halfElement(in *Inst)   { in.elem = 4 }

// Moves.
var (
	Move      = inst("VMOVUPS", m0F, 0, 0x10, FormLoad, plain, memoryOnly)
	MoveTo    = inst("VMOVUPS", m0F, 0, 0x11, FormStore, plain)                               // to memory or a register
	Load32    = inst("VMOVD", m0F, p66, 0x6E, FormLoad, of(onlyX), sized(4), memoryOnly)      // to the first lane, with zeros behind it
	LoadEach  = inst("VBROADCASTSS", m0F38, p66, 0x18, FormLoad, plain, sized(4), memoryOnly) // to all lanes
	Load64    = inst("VMOVQ", m0F, pF3, 0x7E, FormLoad, of(onlyX), sized(8), memoryOnly)
	Store32   = inst("VMOVD", m0F, p66, 0x7E, FormStore, of(onlyX), sized(4), memoryOnly)
	Store64   = inst("VMOVQ", m0F, p66, 0xD6, FormStore, of(onlyX), sized(8), memoryOnly)
	Insert8   = inst("VPINSRB", m0F3A, p66, 0x20, FormTwo, of(onlyX), sized(1), immediate, memoryOnly)
	Insert16  = inst("VPINSRW", m0F, p66, 0xC4, FormTwo, of(onlyX), sized(2), immediate, memoryOnly)
	Insert32  = inst("VPINSRD", m0F3A, p66, 0x22, FormTwo, of(onlyX), sized(4), immediate, memoryOnly)
	Insert64  = inst("VPINSRQ", m0F3A, p66, 0x22, FormTwo, of(onlyX), sized(8), immediate, memoryOnly, w1)
	Extract8  = inst("VPEXTRB", m0F3A, p66, 0x14, FormStore, of(onlyX), sized(1), immediate, memoryOnly)
	Extract16 = inst("VPEXTRW", m0F3A, p66, 0x15, FormStore, of(onlyX), sized(2), immediate, memoryOnly)
	Extract32 = inst("VPEXTRD", m0F3A, p66, 0x16, FormStore, of(onlyX), sized(4), immediate, memoryOnly)
	Extract64 = inst("VPEXTRQ", m0F3A, p66, 0x16, FormStore, of(onlyX), sized(8), immediate, memoryOnly, w1)
	InsertTop = inst("VMOVHPS", m0F, 0, 0x16, FormTwo, of(onlyX), sized(8), memoryOnly) // to the second 64 bits
	ToGPR     = inst("VMOVQ", m0F, p66, 0x7E, FormStore, of(onlyX), w1, registers(fromGPR), registersOnly)
	TopToGPR  = inst("VPEXTRQ", m0F3A, p66, 0x16, FormStore, of(onlyX), immediate, w1, registers(fromGPR), registersOnly)
	Join      = inst("VINSERTI128", m0F3A, p66, 0x38, FormTwo, of(onlyY), half, immediate)
	Upper     = inst("VEXTRACTI128", m0F3A, p66, 0x39, FormStore, of(onlyY), half, immediate)

	Join512  = inst("VINSERTI64X4", m0F3A, p66, 0x3A, FormTwo, of(0), plain, half, immediate, only, w1)
	Upper512 = inst("VEXTRACTI64X4", m0F3A, p66, 0x3B, FormStore, of(0), plain, half, immediate, only, w1)
)

// Arithmetic on floats.
var (
	AddPS = inst("VADDPS", m0F, 0, 0x58, FormTwo, ps)
	AddPD = inst("VADDPD", m0F, p66, 0x58, FormTwo, pd)
	SubPS = inst("VSUBPS", m0F, 0, 0x5C, FormTwo, ps)
	SubPD = inst("VSUBPD", m0F, p66, 0x5C, FormTwo, pd)
	MulPS = inst("VMULPS", m0F, 0, 0x59, FormTwo, ps)
	MulPD = inst("VMULPD", m0F, p66, 0x59, FormTwo, pd)
	DivPS = inst("VDIVPS", m0F, 0, 0x5E, FormTwo, ps)
	DivPD = inst("VDIVPD", m0F, p66, 0x5E, FormTwo, pd)
	MinPS = inst("VMINPS", m0F, 0, 0x5D, FormTwo, ps)
	MinPD = inst("VMINPD", m0F, p66, 0x5D, FormTwo, pd)
	MaxPS = inst("VMAXPS", m0F, 0, 0x5F, FormTwo, ps)
	MaxPD = inst("VMAXPD", m0F, p66, 0x5F, FormTwo, pd)

	// reg = v·reg + r/m, and reg = v·r/m + reg.
	FMA213PS = inst("VFMADD213PS", m0F38, p66, 0xA8, FormTwo, ps)
	FMA213PD = inst("VFMADD213PD", m0F38, p66, 0xA8, FormTwo, pd, w1)
	FMA231PS = inst("VFMADD231PS", m0F38, p66, 0xB8, FormTwo, ps)
	FMA231PD = inst("VFMADD231PD", m0F38, p66, 0xB8, FormTwo, pd, w1)

	RoundPS = inst("VROUNDPS", m0F3A, p66, 0x08, FormLoad, immediate)
	RoundPD = inst("VROUNDPD", m0F3A, p66, 0x09, FormLoad, immediate)

	ComparePS = inst("VCMPPS", m0F, 0, 0xC2, FormTwo, immediate)
	ComparePD = inst("VCMPPD", m0F, p66, 0xC2, FormTwo, immediate)
)

// Logic. Of VEX the types do not matter.
var (
	And    = inst("VANDPS", m0F, 0, 0x54, FormTwo)
	AndNot = inst("VANDNPS", m0F, 0, 0x55, FormTwo) // ^v & r/m
	Or     = inst("VORPS", m0F, 0, 0x56, FormTwo)
	Xor    = inst("VXORPS", m0F, 0, 0x57, FormTwo)

	// v where the mask's sign bits are off, else r/m.
	BlendPS = inst("VBLENDVPS", m0F3A, p66, 0x4A, FormBlend)
	BlendPD = inst("VBLENDVPD", m0F3A, p66, 0x4B, FormBlend)

	Signs = inst("VMOVMSKPS", m0F, 0, 0x50, FormLoad, registers(toGPR), registersOnly)
)

// Arithmetic on integers.
var (
	AddB    = inst("VPADDB", m0F, p66, 0xFC, FormTwo, plain)
	MinUB   = inst("VPMINUB", m0F, p66, 0xDA, FormTwo, plain)
	AddD    = inst("VPADDD", m0F, p66, 0xFE, FormTwo, ps)
	AddQ    = inst("VPADDQ", m0F, p66, 0xD4, FormTwo, pd)
	SubD    = inst("VPSUBD", m0F, p66, 0xFA, FormTwo, ps)
	SubQ    = inst("VPSUBQ", m0F, p66, 0xFB, FormTwo, pd)
	MulD    = inst("VPMULLD", m0F38, p66, 0x40, FormTwo, ps)
	MulWide = inst("VPMULUDQ", m0F, p66, 0xF4, FormTwo, pd) // of the even 32 bits
	MinD    = inst("VPMINSD", m0F38, p66, 0x39, FormTwo, ps)
	MaxD    = inst("VPMAXSD", m0F38, p66, 0x3D, FormTwo, ps)

	EqualD   = inst("VPCMPEQD", m0F, p66, 0x76, FormTwo)
	EqualQ   = inst("VPCMPEQQ", m0F38, p66, 0x29, FormTwo)
	GreaterD = inst("VPCMPGTD", m0F, p66, 0x66, FormTwo)
	GreaterQ = inst("VPCMPGTQ", m0F38, p66, 0x37, FormTwo)

	ShlD  = inst("VPSLLD", m0F, p66, 0x72, FormShift, digit(6), immediate, registersOnly, ps)
	ShrD  = inst("VPSRLD", m0F, p66, 0x72, FormShift, digit(2), immediate, registersOnly, ps)
	SarD  = inst("VPSRAD", m0F, p66, 0x72, FormShift, digit(4), immediate, registersOnly, ps)
	ShlQ  = inst("VPSLLQ", m0F, p66, 0x73, FormShift, digit(6), immediate, registersOnly, pd)
	ShrQ  = inst("VPSRLQ", m0F, p66, 0x73, FormShift, digit(2), immediate, registersOnly, pd)
	ShlVQ = inst("VPSLLVQ", m0F38, p66, 0x47, FormTwo, pd, w1) // by a distance for each lane
	ShrVQ = inst("VPSRLVQ", m0F38, p66, 0x45, FormTwo, pd, w1)
)

// Conversions.
var (
	PSToPD = inst("VCVTPS2PD", m0F, 0, 0x5A, FormLoad, plain, half, halfElement)
	PDToPS = inst("VCVTPD2PS", m0F, p66, 0x5A, FormLoad, pd, halfReg, lettered)
	PSToD  = inst("VCVTTPS2DQ", m0F, pF3, 0x5B, FormLoad, ps)
	PDToD  = inst("VCVTTPD2DQ", m0F, p66, 0xE6, FormLoad, pd, halfReg, lettered)
	DToPS  = inst("VCVTDQ2PS", m0F, 0, 0x5B, FormLoad, ps)
	DToPD  = inst("VCVTDQ2PD", m0F, pF3, 0xE6, FormLoad, plain, half, halfElement)
	DToQ   = inst("VPMOVSXDQ", m0F38, p66, 0x25, FormLoad, plain, half)
	BToD   = inst("VPMOVZXBD", m0F38, p66, 0x31, FormLoad, plain, quarter)
	WToD   = inst("VPMOVZXWD", m0F38, p66, 0x33, FormLoad, plain, half)

	PackW      = inst("VPACKUSDW", m0F38, p66, 0x2B, FormTwo)
	Shuffle    = inst("VSHUFPS", m0F, 0, 0xC6, FormTwo, immediate)
	UnpackLow  = inst("VUNPCKLPD", m0F, p66, 0x14, FormTwo, pd)
	UnpackHigh = inst("VUNPCKHPD", m0F, p66, 0x15, FormTwo, pd)
	ShuffB     = inst("VPSHUFB", m0F38, p66, 0x00, FormTwo)
	SwapD      = inst("VPSHUFD", m0F, p66, 0x70, FormLoad, immediate)
)

// Lookups.
var (
	PermilPS = inst("VPERMILPS", m0F38, p66, 0x0C, FormTwo, ps)         // v at the indices in r/m, in parts of 16 bytes
	PermilPD = inst("VPERMILPD", m0F38, p66, 0x0D, FormTwo, pd)         // which are in bit 1
	Permute  = inst("VPERMD", m0F38, p66, 0x36, FormTwo, of(onlyY), ps) // r/m at the indices in v
	GatherPS = inst("VGATHERDPS", m0F38, p66, 0x92, FormGather, plain, sized(4), memoryOnly)
	GatherPD = inst("VGATHERDPD", m0F38, p66, 0x92, FormGather, plain, sized(8), memoryOnly, w1)
)

// Instructions that only EVEX has.
var (
	AndD    = inst("VPANDD", m0F, p66, 0xDB, FormTwo, wide)
	AndNotD = inst("VPANDND", m0F, p66, 0xDF, FormTwo, wide) // ^v & r/m
	OrD     = inst("VPORD", m0F, p66, 0xEB, FormTwo, wide)
	XorD    = inst("VPXORD", m0F, p66, 0xEF, FormTwo, wide)

	RoundScalePS = inst("VRNDSCALEPS", m0F3A, p66, 0x08, FormLoad, wide, immediate)
	RoundScalePD = inst("VRNDSCALEPD", m0F3A, p66, 0x09, FormLoad, wideQ, immediate)

	MulQ    = inst("VPMULLQ", m0F38, p66, 0x40, FormTwo, wideQ)
	MinQ    = inst("VPMINSQ", m0F38, p66, 0x39, FormTwo, wideQ)
	MaxQ    = inst("VPMAXSQ", m0F38, p66, 0x3D, FormTwo, wideQ)
	SarQ    = inst("VPSRAQ", m0F, p66, 0x72, FormShift, digit(4), immediate, registersOnly, wideQ)
	QToPD   = inst("VCVTQQ2PD", m0F, pF3, 0xE6, FormLoad, wideQ)
	QToPS   = inst("VCVTQQ2PS", m0F, 0, 0x5B, FormLoad, wideQ, halfReg, lettered)
	PDToQ   = inst("VCVTTPD2QQ", m0F, p66, 0x7A, FormLoad, wideQ)
	NarrowQ = inst("VPMOVQD", m0F38, pF3, 0x35, FormStore, plain, only, half) // the low 32 bits

	LoadEach64 = inst("VBROADCASTSD", m0F38, p66, 0x19, FormLoad, plain, only, sized(8), memoryOnly, w1, of(6)) // to all lanes

	// A mask of the lanes where a comparison holds, under a mask too.
	MaskPS = inst("VCMPPS", m0F, 0, 0xC2, FormTwo, wide, immediate, registers(toMask))
	MaskPD = inst("VCMPPD", m0F, p66, 0xC2, FormTwo, wideQ, immediate, registers(toMask))
	MaskD  = inst("VPCMPD", m0F3A, p66, 0x1F, FormTwo, wide, immediate, registers(toMask))
	MaskQ  = inst("VPCMPQ", m0F3A, p66, 0x1F, FormTwo, wideQ, immediate, registers(toMask))
	TestD  = inst("VPTESTMD", m0F38, p66, 0x27, FormTwo, wide, registers(toMask)) // of the lanes where v and r/m have a bit in common

	BlendMaskPS = inst("VBLENDMPS", m0F38, p66, 0x65, FormTwo, wide) // v where the mask is off, else r/m
	BlendMaskPD = inst("VBLENDMPD", m0F38, p66, 0x65, FormTwo, wideQ)

	ScatterPS = inst("VSCATTERDPS", m0F38, p66, 0xA2, FormScatter, plain, only, sized(4), memoryOnly)
	ScatterPD = inst("VSCATTERDPD", m0F38, p66, 0xA2, FormScatter, plain, only, sized(8), memoryOnly, w1)

	// reg and then r/m as one table, at the indices in v.
	PermutePairPS = inst("VPERMT2PS", m0F38, p66, 0x7F, FormTwo, wide)
	PermutePairPD = inst("VPERMT2PD", m0F38, p66, 0x7F, FormTwo, wideQ)
	PermuteQ      = inst("VPERMQ", m0F38, p66, 0x36, FormTwo, wideQ, of(6)) // r/m at the indices in v
	PermutePairB  = inst("VPERMT2B", m0F38, p66, 0x7D, FormTwo, plain, only)
	PermuteB      = inst("VPERMB", m0F38, p66, 0x8D, FormTwo, plain, only) // r/m at the indices in v

	RotateD  = inst("VPROLD", m0F, p66, 0x72, FormShift, digit(1), immediate, registersOnly, wide)
	TernaryD = inst("VPTERNLOGD", m0F3A, p66, 0x25, FormTwo, wide, immediate) // by the bit of the immediate that those of reg, v and r/m name

	Insert128   = inst("VINSERTI32X4", m0F3A, p66, 0x38, FormTwo, plain, only, sized(16), immediate, memoryOnly, of(4))
	UnpackLowD  = inst("VPUNPCKLDQ", m0F, p66, 0x62, FormTwo, ps)
	UnpackHighD = inst("VPUNPCKHDQ", m0F, p66, 0x6A, FormTwo, ps)
	UnpackLowQ  = inst("VPUNPCKLQDQ", m0F, p66, 0x6C, FormTwo, pd)
	UnpackHighQ = inst("VPUNPCKHQDQ", m0F, p66, 0x6D, FormTwo, pd)
)

// MaskSet is the instructions on mask registers of a number of lanes. Other lanes of what they load are off.
type MaskSet struct {
	Move, Store, Test    *Inst // Test sets the condition Zero if neither mask has a lane
	And, AndNot, Or, Xor *Inst // AndNot is ^v & r/m
}

// Masks of 8 and 16 lanes.
var (
	Masks8  = maskSet("B", p66)
	Masks16 = maskSet("W", 0)
)

func maskSet(letter string, pp byte) MaskSet {
	on := func(name string, code byte, f Form, mods ...mod) *Inst {
		return inst(name+letter, m0F, pp, code, f, append(mods, registers(masksOnly))...)
	}
	return MaskSet{
		Move:   on("KMOV", 0x90, FormLoad, of(onlyX)),
		Store:  on("KMOV", 0x91, FormStore, of(onlyX), memoryOnly),
		Test:   on("KORTEST", 0x98, FormLoad, of(onlyX), registersOnly),
		And:    on("KAND", 0x41, FormTwo, of(onlyY), registersOnly),
		AndNot: on("KANDN", 0x42, FormTwo, of(onlyY), registersOnly),
		Or:     on("KOR", 0x45, FormTwo, of(onlyY), registersOnly),
		Xor:    on("KXOR", 0x47, FormTwo, of(onlyY), registersOnly),
	}
}
