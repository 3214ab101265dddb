package ptx

// form is a row of the table of instructions.
//
// The opcode may have alternatives in braces, {f32,f64}; one of them may be empty,
// and braces may hold several parts, {f32.f64,f16.f32}.
//
// The operands stand with blanks between them, those that are written in front of
// a sign =. Each is a list of choices with | between them:
//
//	T U         a register of the size of the first type, of the second type
//	p h r d     a register of that class
//	#           a literal of the first type
//	i           an integer of 32 bits
//	n           an integer from 0
//	4           that integer
//	bool        0, 1 or -1
//	[s] [g]     an address in shared or in global memory
//	[param]     the name of a parameter
//	{T4} {r2}   a vector of so many registers of a type's size or of a class
//	label       a label
//	symbol      a shared variable
//	special     a special register of 32 bits
//	clock       a special register of 64 bits
//
// Where the type has 8 bits, T and U are %h or %r.
type form struct {
	opcode string
	args   string
	warp   bool // for all lanes of a warp, or threads of a block, at once: may not be guarded
	since  int  // the version it needs, 74 for 7.4; at least 70
	sm     int  // the target it needs; at least 80
}

// Lists of types and modifiers of several rows.
const (
	inMemory   = "{b8,u8,b16,u16,s16,b32,u32,s32,f32,b64,u64,s64,f64}"
	inFours    = "{b8,u8,b16,u16,s16,b32,u32,s32,f32}"
	ofParams   = "{b32,u32,s32,f32,b64,u64,s64,f64}"
	words      = "{u32,s32,u64,s64}"
	small      = "{u32,s32}"
	reals      = "{f32,f64}"
	integers   = "{u8,s8,u16,s16,u32,s32,u64,s64}"
	halves     = "{f16,f32,f64}"
	toInteger  = "{rni,rzi,rmi,rpi}"
	toReal     = "{rn,rz,rm,rp}"
	maybeSat   = "{,sat}"
	hint       = "{L1::no_allocate,L1::evict_last}"
	connective = "{and,or,xor}"
	ordered    = "{eq,ne,lt,le,gt,ge}"
	unordered  = "{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}"
	unsigned   = "{eq,ne,lt,le,gt,ge,lo,ls,hi,hs}"
	ofBits     = "{b16,b32,b64}"
	ofUnsigned = "{u16,u32,u64}"
	ofSigned   = "{s16,s32,s64}"
)

// forms are the instructions that there are.
var forms = []form{
	// Data.
	{opcode: "mov.pred", args: "p = p|bool"},
	{opcode: "mov.{b16,b64,s32,f32,f64}", args: "T = T|#"},
	{opcode: "mov.u32", args: "r = r|#|special|symbol"},
	{opcode: "mov.u64", args: "d = d|#|clock"},
	{opcode: "mov.b32", args: "r = r|#"},
	{opcode: "mov.b32", args: "r = {h2}"},
	{opcode: "mov.b32", args: "{h2} = r"},
	{opcode: "mov.b64", args: "d = {r2}"},
	{opcode: "mov.b64", args: "{r2} = d"},
	{opcode: "ld.param." + ofParams, args: "T = [param]"},
	{opcode: "ld.global.{,nc}." + inMemory, args: "T = [g]"},
	{opcode: "ld.global.{,nc}.v2." + inMemory, args: "{T2} = [g]"},
	{opcode: "ld.global.{,nc}.v4." + inFours, args: "{T4} = [g]"},
	{opcode: "ld.global.{,nc}." + hint + "." + inMemory, args: "T = [g]", since: 74},
	{opcode: "ld.global.{,nc}." + hint + ".v2." + inMemory, args: "{T2} = [g]", since: 74},
	{opcode: "ld.global.{,nc}." + hint + ".v4." + inFours, args: "{T4} = [g]", since: 74},
	{opcode: "ld.acquire.gpu.global.{u32,u64}", args: "T = [g]"},
	{opcode: "ld.volatile.global." + inMemory, args: "T = [g]"},
	{opcode: "ld.volatile.shared." + inMemory, args: "T = [s]"},
	{opcode: "ld.shared." + inMemory, args: "T = [s]"},
	{opcode: "ld.shared.v2." + inMemory, args: "{T2} = [s]"},
	{opcode: "ld.shared.v4." + inFours, args: "{T4} = [s]"},
	{opcode: "st.global." + inMemory, args: "[g] T|#"},
	{opcode: "st.global.v2." + inMemory, args: "[g] {T2}"},
	{opcode: "st.global.v4." + inFours, args: "[g] {T4}"},
	{opcode: "st.release.gpu.global.{u32,u64}", args: "[g] T|#"},
	{opcode: "st.shared." + inMemory, args: "[s] T|#"},
	{opcode: "st.shared.v2." + inMemory, args: "[s] {T2}"},
	{opcode: "st.shared.v4." + inFours, args: "[s] {T4}"},
	{opcode: "cvta.to.global.u64", args: "d = d"},
	{opcode: "prmt.b32", args: "r = r|# r|# r|#"},
	{opcode: "selp.{b16,u16,s16,b32,u32,s32,f32,b64,u64,s64,f64}", args: "T = T|# T|# p"},

	// Conversions. Saturation is for values that the result may not hold.
	{opcode: "cvt." + integers + "." + integers, args: "T = U"},
	{opcode: "cvt.sat.u8.{s8,u16,s16,u32,s32,u64,s64}", args: "T = U"},
	{opcode: "cvt.sat.s8.{u8,u16,s16,u32,s32,u64,s64}", args: "T = U"},
	{opcode: "cvt.sat.u16.{s8,s16,u32,s32,u64,s64}", args: "T = U"},
	{opcode: "cvt.sat.s16.{u16,u32,s32,u64,s64}", args: "T = U"},
	{opcode: "cvt.sat.u32.{s8,s16,s32,u64,s64}", args: "T = U"},
	{opcode: "cvt.sat.s32.{u32,u64,s64}", args: "T = U"},
	{opcode: "cvt.sat.u64.{s8,s16,s32,s64}", args: "T = U"},
	{opcode: "cvt.sat.s64.u64", args: "T = U"},
	{opcode: "cvt." + toInteger + "." + maybeSat + "." + integers + "." + halves, args: "T = U"},
	{opcode: "cvt." + toReal + "." + maybeSat + "." + halves + "." + integers, args: "T = U"},
	{opcode: "cvt." + toReal + "." + maybeSat + ".{f32.f64,f16.f32,f16.f64}", args: "T = U"},
	{opcode: "cvt." + maybeSat + ".{f32.f16,f64.f16,f64.f32}", args: "T = U"},
	{opcode: "cvt.{,rni,rzi,rmi,rpi}." + maybeSat + ".{f16.f16,f32.f32,f64.f64}", args: "T = U"},
	{opcode: "cvt.rn.{f16x2,bf16x2}.f32", args: "T = r r"},
	{opcode: "cvt.rn.bf16.f32", args: "T = U"},
	{opcode: "cvt.rna.tf32.f32", args: "T = U"},

	// Integers.
	{opcode: "{add,sub}." + words, args: "T = T|# T|#"},
	{opcode: "{add,sub}.sat.s32", args: "T = T|# T|#"},
	{opcode: "mul.{lo,hi}." + words, args: "T = T|# T|#"},
	{opcode: "mul.wide." + small, args: "d = T|# T|#"},
	{opcode: "mad.lo." + words, args: "T = T|# T|# T|#"},
	{opcode: "mad.wide." + small, args: "d = T|# T|# d|n"},
	{opcode: "{div,rem,min,max}." + words, args: "T = T|# T|#"},
	{opcode: "{abs,neg}.{s32,s64}", args: "T = T"},
	{opcode: "{and,or,xor}.pred", args: "p = p p"},
	{opcode: "not.pred", args: "p = p"},
	{opcode: "{and,or,xor}.{b32,b64}", args: "T = T|# T|#"},
	{opcode: "not.{b32,b64}", args: "T = T"},
	{opcode: "shl.{b32,b64}", args: "T = T|# r|i"},
	{opcode: "shr.{u32,s32,b32,u64,s64,b64}", args: "T = T|# r|i"},
	{opcode: "bfe." + small, args: "r = r|# r|i r|i"},
	{opcode: "bfi.b32", args: "r = r|# r|# r|i r|i"},
	{opcode: "{popc,clz}.b32", args: "r = r"},

	// Floats.
	{opcode: "{add,sub,mul}.rn." + reals, args: "T = T|# T|#"},
	{opcode: "fma.rn." + reals, args: "T = T|# T|# T|#"},
	{opcode: "{min,max}." + reals, args: "T = T|# T|#"},
	{opcode: "{abs,neg}." + reals, args: "T = T"},
	{opcode: "div.rn." + reals, args: "T = T|# T|#"},
	{opcode: "{rcp,sqrt}.rn." + reals, args: "T = T"},
	{opcode: "rcp.approx.ftz.f32", args: "r = r"},
	{opcode: "{ex2,lg2}.approx.{,ftz}.f32", args: "r = r"},
	{opcode: "{add,mul}.rn.f16x2", args: "r = r r"},
	{opcode: "fma.rn.f16x2", args: "r = r r r"},
	{opcode: "{min,max}.f16x2", args: "r = r r"},

	// Comparisons.
	{opcode: "setp.{eq,ne}." + ofBits, args: "p = T|# T|#"},
	{opcode: "setp." + unsigned + "." + ofUnsigned, args: "p = T|# T|#"},
	{opcode: "setp." + ordered + "." + ofSigned, args: "p = T|# T|#"},
	{opcode: "setp." + unordered + "." + reals, args: "p = T|# T|#"},
	{opcode: "setp.{eq,ne}." + connective + "." + ofBits, args: "p = T|# T|# p"},
	{opcode: "setp." + unsigned + "." + connective + "." + ofUnsigned, args: "p = T|# T|# p"},
	{opcode: "setp." + ordered + "." + connective + "." + ofSigned, args: "p = T|# T|# p"},
	{opcode: "setp." + unordered + "." + connective + "." + reals, args: "p = T|# T|# p"},

	// Control.
	{opcode: "bra.{,uni}", args: "label"},
	{opcode: "{ret,exit,trap}"},
	{opcode: "bar.sync", args: "0", warp: true},
	{opcode: "bar.warp.sync", args: "r|i", warp: true},
	{opcode: "membar.gl"},
	{opcode: "fence.acq_rel.gpu"},
	{opcode: "griddepcontrol.{wait,launch_dependents}", since: 78, sm: 90},

	// Lanes of a warp together.
	{opcode: "shfl.sync.{bfly,idx,down,up}.b32", args: "r = r r|i r|i r|i", warp: true},
	{opcode: "vote.sync.{any,all}.pred", args: "p = p r|i", warp: true},
	{opcode: "vote.sync.ballot.b32", args: "r = p r|i", warp: true},
	{opcode: "redux.sync.{add,min,max}." + small, args: "r = r r|i", warp: true},
	{opcode: "redux.sync.{and,or}.b32", args: "r = r r|i", warp: true},

	// Atomics, of integers: sums of floats depend on the order. red.add of floats is for sums that are said to.
	{opcode: "red.global.add.{f32,f64}", args: "[g] T|#"},
	{opcode: "atom.global.add.{u32,s32,u64}", args: "T = [g] T|#"},
	{opcode: "atom.shared.add.{u32,s32,u64}", args: "T = [s] T|#"},
	{opcode: "atom.global.{min,max}.{u32,s32,u64}", args: "T = [g] T|#"},
	{opcode: "atom.shared.{min,max}.{u32,s32,u64}", args: "T = [s] T|#"},
	{opcode: "atom.global.{exch,and,or}.{b32,b64}", args: "T = [g] T|#"},
	{opcode: "atom.shared.{exch,and,or}.{b32,b64}", args: "T = [s] T|#"},
	{opcode: "atom.global.cas.{b32,b64}", args: "T = [g] T|# T|#"},
	{opcode: "atom.shared.cas.{b32,b64}", args: "T = [s] T|# T|#"},
	{opcode: "red.global.{add,min,max}.{u32,s32,u64}", args: "[g] T|#"},
	{opcode: "red.shared.{add,min,max}.{u32,s32,u64}", args: "[s] T|#"},
	{opcode: "red.global.{and,or}.b32", args: "[g] T|#"},
	{opcode: "red.shared.{and,or}.b32", args: "[s] T|#"},

	// Copies that run beside the instructions.
	{opcode: "cp.async.ca.shared.global", args: "[s] [g] 4|8|16"},
	{opcode: "cp.async.ca.shared.global", args: "[s] [g] 4|8|16 r|n"},
	{opcode: "cp.async.cg.shared.global", args: "[s] [g] 16"},
	{opcode: "cp.async.cg.shared.global", args: "[s] [g] 16 r|n"},
	{opcode: "cp.async.{commit_group,wait_all}"},
	{opcode: "cp.async.wait_group", args: "n"},

	// Matrices.
	{opcode: "ldmatrix.sync.aligned.m8n8.x1.{,trans}.shared.b16", args: "{r1} = [s]", warp: true},
	{opcode: "ldmatrix.sync.aligned.m8n8.x2.{,trans}.shared.b16", args: "{r2} = [s]", warp: true},
	{opcode: "ldmatrix.sync.aligned.m8n8.x4.{,trans}.shared.b16", args: "{r4} = [s]", warp: true},
	{opcode: "mma.sync.aligned.m16n8k16.row.col.f32.{f16.f16,bf16.bf16}.f32", args: "{r4} = {r4} {r2} {r4}", warp: true},
	{opcode: "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", args: "{r4} = {r4} {r2} {r4}", warp: true},
	{opcode: "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", args: "{r4} = {r2} {r1} {r4}", warp: true},
}
