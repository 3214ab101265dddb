package ptx

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// kernelText is a module with one kernel around statements. Registers 0 to 7 of
// each class are written before them.
func kernelText(version, target string, body string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".version %s\n.target %s\n.address_size 64\n.extern .shared .align 16 .b8 room[];\n", version, target)
	b.WriteString(".visible .entry k(.param .u64 x, .param .u32 n, .param .f32 f, .param .b32 any)\n.maxntid 128, 1, 1\n{\n")
	b.WriteString(".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>;\n")
	b.WriteString(".shared .align 16 .b8 tile[64]; .shared .align 4 .b8 word[64]; .shared .align 1 .b8 odd[3];\n")
	for i := range 8 {
		fmt.Fprintf(&b, "mov.pred %%p%d, 0; mov.b16 %%h%d, 0; mov.b32 %%r%d, 0; mov.b64 %%d%d, 0;\n", i, i, i, i)
	}
	b.WriteString(body + "\nEND:\nret;\n}\n")
	return b.String()
}

func verifyText(t *testing.T, text string) error {
	t.Helper()
	m, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	err = m.Verify()
	if err != nil && (!errors.Is(err, ErrInvalid) || strings.Contains(err.Error(), "\n")) {
		t.Errorf("the error %q", err)
	}
	return err
}

// TestAccepts takes instructions that are right.
func TestAccepts(t *testing.T) {
	for _, in := range []string{
		// data
		"mov.pred %p0, %p1", "mov.pred %p0, -1", "mov.b16 %h0, %h1", "mov.b32 %r0, %r1", "mov.b64 %d0, %d1",
		"mov.u32 %r0, 7", "mov.s32 %r0, -7", "mov.f32 %r0, 0f3F800000", "mov.f64 %d0, 0d3FF0000000000000", "mov.u64 %d0, 7",
		"mov.u32 %r0, 4294967295", "mov.b16 %h0, 65535", "mov.b16 %h0, -32768",
		"mov.u32 %r0, %tid.x", "mov.u32 %r0, %ntid.x", "mov.u32 %r0, %ctaid.z", "mov.u32 %r0, %nctaid.y", "mov.u32 %r0, %laneid",
		"mov.u64 %d0, %clock64", "mov.u32 %r0, tile", "mov.u32 %r0, room", "mov.u32 %r0, odd", "st.shared.u8 [odd+2], %r0",
		"mov.b32 {%h0, %h1}, %r0", "mov.b32 %r0, {%h0, %h0}", "mov.b64 {%r0, %r1}, %d0", "mov.b64 %d0, {%r0, %r1}",
		"ld.param.u64 %d0, [x]", "ld.param.b64 %d0, [x]", "ld.param.s32 %r0, [n]", "ld.param.f32 %r0, [f]", "ld.param.b32 %r0, [f]", "ld.param.f32 %r0, [any]", "ld.param.s32 %r0, [any]",
		"ld.global.f32 %r0, [%d0]", "ld.global.nc.f32 %r0, [%d0+4]", "ld.global.nc.L1::no_allocate.v4.f32 {%r0, %r1, %r2, %r3}, [%d0+-16]",
		"ld.global.L1::evict_last.v2.u64 {%d0, %d1}, [%d2]", "ld.global.u8 %r0, [%d0]", "ld.global.u8 %h0, [%d0]", "ld.global.v4.b8 {%r0, %r1, %r2, %r3}, [%d0]",
		"ld.acquire.gpu.global.u32 %r0, [%d0]", "ld.volatile.shared.u32 %r0, [%r1]", "ld.volatile.global.f64 %d0, [%d1]",
		"ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [tile+48]", "ld.shared.v2.b16 {%h0, %h1}, [%r0]", "ld.shared.f32 %r0, [room+1024]",
		"st.global.v2.f64 [%d0], {%d1, %d1}", "st.global.b32 [%d0], 0", "st.global.u8 [%d0], %r0", "st.global.b8 [%d0], %h0", "st.shared.f32 [%r0+4], 0f00000000",
		"st.release.gpu.global.u64 [%d0], %d1", "st.shared.b64 [tile+56], %d0", "cvta.to.global.u64 %d0, %d1",
		"mov.u32 %r8, tile; ld.shared.v4.f32 {%r0, %r1, %r2, %r3}, [%r8+16]", "mov.u32 %r8, tile; mov.b64 {%r7, %r8}, %d0; st.shared.f32 [%r8+64], %r0",
		"mov.u32 %r8, tile; add.u32 %r8, %r8, 8; ld.shared.v4.f32 {%r0, %r1, %r2, %r3}, [%r8+8]",
		"mov.u32 %r8, 8; mov.u32 %r8, tile; st.shared.f32 [%r8+64], %r0",
		"cvt.u64.u32 %d0, %r0", "cvt.rn.f32.u32 %r0, %r1", "cvt.rzi.s32.f32 %r0, %r1", "cvt.rni.f32.f32 %r0, %r1", "cvt.rn.f32.f64 %r0, %d0",
		"cvt.f64.f32 %d0, %r0", "cvt.rn.f16.f32 %h0, %r0", "cvt.f32.f16 %r0, %h0", "cvt.sat.u8.s32 %r0, %r1", "cvt.u32.u16 %r0, %h0", "cvt.rmi.sat.f32.f32 %r0, %r1",
		"cvt.rn.f16x2.f32 %r0, %r1, %r2", "cvt.rn.bf16x2.f32 %r0, %r1, %r2", "cvt.rna.tf32.f32 %r0, %r1", "cvt.rn.bf16.f32 %h0, %r0",
		"prmt.b32 %r0, %r1, %r2, 29712", "selp.f32 %r0, %r1, 0f3F800000, %p0", "selp.b64 %d0, 1, 2, %p0", "selp.s32 %r0, -1, 0, %p0", "selp.b16 %h0, %h1, %h2, %p0",
		// integers
		"add.u32 %r0, %r1, -128", "add.sat.s32 %r0, %r1, -128", "sub.sat.s32 %r0, 7, %r1", "sub.s64 %d0, 0, %d1", "mul.lo.s32 %r0, %r1, %r2", "mul.hi.u64 %d0, %d1, %d2", "mul.wide.u32 %d0, %r1, 4",
		"mad.lo.u32 %r0, %r1, 3, %r2", "mad.wide.s32 %d0, %r0, 4, %d1", "div.u32 %r0, %r1, %r2", "rem.s64 %d0, %d1, 7", "min.s32 %r0, %r1, 0", "max.u64 %d0, %d1, %d2",
		"abs.s32 %r0, %r1", "neg.s64 %d0, %d1", "and.pred %p0, %p1, %p2", "or.b32 %r0, %r1, 255", "xor.b64 %d0, %d1, %d2", "not.pred %p0, %p1", "not.b32 %r0, %r1",
		"shl.b32 %r0, %r1, 3", "shl.b64 %d0, %d1, %r0", "shr.s32 %r0, %r1, %r2", "shr.b64 %d0, %d1, 63", "bfe.u32 %r0, %r1, 8, 8", "bfi.b32 %r0, %r1, %r2, 0, %r3",
		"popc.b32 %r0, %r1", "clz.b32 %r0, %r1",
		// floats
		"add.rn.f32 %r0, %r1, %r2", "sub.rn.f64 %d0, %d1, 0d0000000000000000", "mul.rn.f32 %r0, 0fBF800000, %r1", "fma.rn.f32 %r0, %r1, %r2, %r3", "fma.rn.f64 %d0, %d1, %d2, %d3",
		"min.f32 %r0, %r1, %r2", "max.f64 %d0, %d1, %d2", "abs.f32 %r0, %r1", "neg.f64 %d0, %d1", "div.rn.f32 %r0, %r1, %r2", "rcp.rn.f64 %d0, %d1", "rcp.approx.ftz.f32 %r0, %r1",
		"sqrt.rn.f32 %r0, %r1", "ex2.approx.ftz.f32 %r0, %r1", "ex2.approx.f32 %r0, %r1", "lg2.approx.ftz.f32 %r0, %r1", "lg2.approx.f32 %r0, %r1",
		"add.rn.f16x2 %r0, %r1, %r2", "mul.rn.f16x2 %r0, %r1, %r2", "fma.rn.f16x2 %r0, %r1, %r2, %r3", "max.f16x2 %r0, %r1, %r2", "min.f16x2 %r0, %r1, %r2",
		// comparisons
		"setp.eq.b32 %p0, %r0, 0", "setp.lt.u32 %p0, %r0, %r1", "setp.hs.u64 %p0, %d0, %d1", "setp.ge.s32 %p0, %r0, -1", "setp.geu.f32 %p0, %r0, 0f00000000", "setp.nan.f64 %p0, %d0, %d0",
		"setp.lt.and.s32 %p0, %r0, %r1, %p1", "setp.gtu.xor.f32 %p0, %r0, %r1, %p1", "setp.ls.or.u32 %p0, %r0, %r1, %p1", "setp.ne.and.b64 %p0, %d0, %d1, %p1",
		// control
		"bra END", "bra.uni END", "@%p0 bra END", "@!%p0 bra.uni END", "@%p0 ret", "@%p0 exit", "@%p0 trap", "trap", "bar.sync 0", "bar.warp.sync 0xffffffff", "bar.warp.sync %r0", "membar.gl", "fence.acq_rel.gpu",
		// lanes
		"shfl.sync.bfly.b32 %r0, %r1, 16, 31, 4294967295", "shfl.sync.idx.b32 %r0, %r1, %r2, 31, -1", "vote.sync.any.pred %p0, %p1, -1", "vote.sync.ballot.b32 %r0, %p1, -1",
		"redux.sync.add.u32 %r0, %r1, -1", "redux.sync.or.b32 %r0, %r1, %r2",
		// atomics
		"atom.global.add.u32 %r0, [%d0], 1", "atom.shared.max.s32 %r0, [tile], %r1", "atom.global.cas.b64 %d0, [%d1], %d2, %d3", "atom.shared.exch.b32 %r0, [%r1], 0", "atom.global.or.b32 %r0, [%d0], 1",
		"red.global.add.u64 [%d0], %d1", "red.shared.and.b32 [%r0], 15", "red.global.min.u32 [%d0+8], %r1", "red.global.add.f32 [%d0], %r1", "red.global.add.f64 [%d0+8], 0d3FF0000000000000",
		// copies
		"cp.async.ca.shared.global [%r0], [%d0], 4", "cp.async.ca.shared.global [word+4], [%d0], 4, %r1", "cp.async.cg.shared.global [tile+16], [%d0+-16], 16, 8", "cp.async.commit_group", "cp.async.wait_group 2", "cp.async.wait_all",
		// matrices
		"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%r1]", "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r0, %r1, %r2, %r3}, [tile+16]",
		"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, %r7}, {%r4, %r5}, {%r0, %r1, %r2, %r3}",
		"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r0, %r1, %r2, %r3}, {%r4, %r4, %r4, %r4}, {%r4, %r5}, {%r0, %r1, %r2, %r3}",
		"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, %r7}, {%r4, %r5}, {%r0, %r1, %r2, %r3}",
		"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%r4}, {%r0, %r1, %r2, %r3}",
	} {
		if err := verifyText(t, kernelText("7.4", "sm_80", in+";")); err != nil {
			t.Error(err)
		}
	}
	for _, in := range []string{"griddepcontrol.wait", "griddepcontrol.launch_dependents"} {
		if err := verifyText(t, kernelText("7.8", "sm_90", in+";")); err != nil {
			t.Error(err)
		}
		if err := verifyText(t, kernelText("8.0", "sm_90a", in+";")); err != nil {
			t.Error(err)
		}
	}
}

// TestRefuses wants a reason for instructions that are wrong.
func TestRefuses(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		// opcodes
		{"foo.b32 %r0, %r1", "foo.b32 is no instruction that is known; see the table"},
		{"add.f32 %r0, %r1, %r2", "add.f32 is no instruction that is known; want {add,sub}.{u32,s32,u64,s64} or"},
		{"add.rz.f32 %r0, %r1, %r2", "no instruction"},
		{"add.sat.u32 %r0, %r1, %r2", "no instruction"},
		{"add.rn.ftz.f32 %r0, %r1, %r2", "no instruction"},
		{"fma.rn.f32.f32 %r0, %r1, %r2, %r3", "no instruction"},
		{"div.full.f32 %r0, %r1, %r2", "no instruction"},
		{"mul.s32 %r0, %r1, %r2", "no instruction"},
		{"mul.wide.u64 %d0, %d1, %d2", "no instruction"},
		{"ex2.f32 %r0, %r1", "no instruction"},
		{"mov.f16 %h0, %h1", "no instruction"},
		{"ld.f32 %r0, [%d0]", "no instruction"},
		{"ld.shared.nc.f32 %r0, [%r0]", "no instruction"},
		{"ld.global.v4.f64 {%d0, %d1, %d2, %d3}, [%d4]", "no instruction"},
		{"ld.global.v4.nc.f32 {%r0, %r1, %r2, %r3}, [%d4]", "no instruction"},
		{"ld.param.u8 %r0, [x]", "no instruction"},
		{"st.global.nc.f32 [%d0], %r0", "no instruction"},
		{"atom.global.add.f32 %r0, [%d0], %r1", "no instruction"},
		{"red.shared.add.f32 [%r0], %r1", "no instruction"},
		{"red.global.max.f32 [%d0], %r1", "no instruction"},
		{"atom.global.exch.u32 %r0, [%d0], %r1", "no instruction"},
		{"cvt.f32.f64 %r0, %d0", "no instruction"},
		{"cvt.f32.u32 %r0, %r1", "no instruction"},
		{"cvt.rn.s32.f32 %r0, %r1", "no instruction"},
		{"cvt.rn.f64.f32 %d0, %r1", "no instruction"},
		{"cvt.sat.u32.u8 %r0, %r1", "no instruction"},
		{"setp.lo.s32 %p0, %r0, %r1", "no instruction"},
		{"setp.lt.b32 %p0, %r0, %r1", "no instruction"},
		{"setp.equ.u32 %p0, %r0, %r1", "no instruction"},
		{"cp.async.ca.global.shared [%d0], [%r0], 4", "no instruction"},
		{"shfl.bfly.b32 %r0, %r1, 1, 31", "no instruction"},
		{"redux.sync.add.b32 %r0, %r1, -1", "no instruction"},
		{"mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 {%r0}, {%r0}, {%r0}, {%r0}", "no instruction"},
		// operands
		{"ret 0", "it has 1 operands; want 0"},
		{"add.s32 %r0, %r1", "it has 2 operands; want 3 (T = T|# T|#)"},
		{"mov.u32 %r0, %warpid", "operand 2, %warpid, does not fit; want a register %r or a literal .u32 or a special register of 32 bits"},
		{"mov.u32 %r0, %tid.w", "operand 2, %tid.w, does not fit"},
		{"mov.u32 %r0, %clock64", "operand 2, %clock64, does not fit"},
		{"mov.u64 %d0, %tid.x", "want a register %d or a literal .u64 or %clock64"},
		{"mov.s32 %r0, tile", "operand 2, tile, does not fit"},
		{"mov.u32 %r0, nowhere", "there is no shared variable nowhere"},
		{"mov.u32 %r0, END", "there is no shared variable END"},
		{"mov.pred %p0, 2", "want a register %p or 0, 1 or -1"},
		{"mov.b32 %r0, 4294967296", "want a register %r or a literal .b32"},
		{"mov.b32 %r0, -2147483649", "does not fit"},
		{"mov.b16 %h0, 65536", "does not fit"},
		{"mov.b16 %h0, -32769", "does not fit"},
		{"mov.b32 {%h0}, %r0", "operand 1, {%h0}, does not fit"},
		{"mov.b32 {%r0, %r1}, %r0", "operand 1, {%r0, %r1}, does not fit"},
		{"mov.b32 {%h0, %h0}, %r0", "it writes %h0 twice"},
		{"ld.global.v2.f32 {%r0, %r0}, [%d0]", "it writes %r0 twice"},
		{"add.s32 5, %r1, %r2", "operand 1, 5, does not fit; want a register %r"},
		{"add.s32 %d0, %r1, %r2", "operand 1, %d0, does not fit"},
		{"add.s64 %d0, %d1, %r2", "operand 3, %r2, does not fit"},
		{"add.rn.f32 %r0, %r1, 1", "operand 3, 1, does not fit; want a register %r or a literal .f32"},
		{"add.s32 %r0, %r1, 0f3F800000", "does not fit"},
		{"add.rn.f64 %d0, %d1, 0f3F800000", "does not fit"},
		{"mul.rn.f16x2 %r0, %r1, 1", "does not fit"},
		{"abs.s32 %r0, 5", "operand 2, 5, does not fit"},
		{"and.pred %p0, %p1, 1", "does not fit"},
		{"selp.b32 %r0, %r1, %r2, %r3", "operand 4, %r3, does not fit; want a register %p"},
		{"cvt.u32.u16 %r0, %r1", "operand 2, %r1, does not fit; want a register %h"},
		{"cvt.u32.u8 %r0, %d1", "want a register %h or %r"},
		{"cvt.u64.u32 %d0, 5", "does not fit"},
		{"shl.b64 %d0, %d1, %d2", "operand 3, %d2, does not fit; want a register %r or an integer of 32 bits"},
		{"mad.wide.u32 %d0, %r0, %r1, %r2", "operand 4, %r2"},
		{"ld.global.u16 %r0, [%d0]", "operand 1, %r0, does not fit; want a register %h"},
		{"ld.global.f32 %r0, [%r1]", "want an address [%d+n] of global memory"},
		{"ld.global.f32 %r0, [tile]", "want an address [%d+n] of global memory"},
		{"ld.global.f32 %r0, %d1", "want an address"},
		{"ld.shared.f32 %r0, [%d1]", "want an address [%r+n] or [variable+n] of shared memory"},
		{"ld.shared.f32 %r0, [nowhere]", "there is no shared variable nowhere"},
		{"ld.shared.f32 %r0, [%r1+2147483648]", "offset 2147483648; want one of 32 bits"},
		{"ld.global.f32 %r0, [%d1+-2147483649]", "want one of 32 bits"},
		{"ld.shared.f32 %r0, [room+2147483648]", "want one of 32 bits"},
		{"ld.global.v2.f32 {%r0, %r1, %r2}, [%d0]", "want a vector of 2 registers %r"},
		{"ld.global.v2.f32 {%d0, %d1}, [%d0]", "want a vector of 2 registers %r"},
		{"ld.global.v2.u8 {%d0, %d1}, [%d0]", "want a vector of 2 registers %h or %r"},
		{"ld.param.u32 %r0, [%d0]", "want the [name] of a parameter"},
		{"ld.param.u32 %r0, [m]", "the kernel has no parameter m"},
		{"ld.param.u32 %r0, [n+4]", "offset 4 in parameter n"},
		{"ld.param.u64 %d0, [n]", "parameter n has type .u32"},
		{"ld.param.f32 %r0, [n]", "parameter n has type .u32"},
		{"ld.param.u32 %r0, [f]", "parameter f has type .f32"},
		{"bra NOWHERE", "the kernel has no label NOWHERE"},
		{"bra tile", "the kernel has no label tile"},
		{"bra %r0", "want a label"},
		{"bar.sync 1", "want 0"},
		{"bar.sync %r0", "want 0"},
		{"bar.warp.sync %d0", "want a register %r or an integer of 32 bits"},
		{"atom.global.add.u32 %r0, [%r1], 1", "of global memory"},
		{"red.shared.add.u32 [%d0], 1", "of shared memory"},
		{"cp.async.cg.shared.global [%r0], [%d0], 8", "want 16"},
		{"cp.async.ca.shared.global [%r0], [%d0], 12", "want 4 or 8 or 16"},
		{"cp.async.ca.shared.global [%d0], [%d0], 4", "of shared memory"},
		{"cp.async.ca.shared.global [%r0], [%d0], 4, -1", "want a register %r or an integer from 0"},
		{"cp.async.ca.shared.global [%r0], [%d0], 4, 8", "it reads 8 bytes of 4"},
		{"cp.async.wait_group %r0", "want an integer from 0"},
		{"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0}, [%r1]", "want a vector of 2 registers %r"},
		{"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%r4, %r5}, {%r0, %r1, %r2, %r3}", "operand 3, {%r4, %r5}, does not fit"},
		// registers
		{"mov.b32 %r9, 0", "register %r9 is not declared; the kernel has 9"},
		{"mov.pred %p0, %p9", "register %p9 is not declared"},
		{"ld.global.f32 %r0, [%d9]", "register %d9 is not declared"},
		{"ld.shared.v2.f32 {%r0, %r9}, [%r0]", "register %r9 is not declared"},
		{"@%p9 mov.b32 %r0, 0", "register %p9 is not declared"},
		{"@%r0 mov.b32 %r0, 0", "its guard is %r0"},
		// guards
		{"@%p0 bar.sync 0", "it is for all threads at once; want it without a guard"},
		{"@%p0 bar.warp.sync -1", "without a guard"},
		{"@!%p0 shfl.sync.bfly.b32 %r0, %r1, 1, 31, -1", "without a guard"},
		{"@%p0 vote.sync.any.pred %p1, %p2, -1", "without a guard"},
		{"@%p0 redux.sync.add.u32 %r0, %r1, -1", "without a guard"},
		{"@%p0 ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%r1]", "without a guard"},
		{"@%p0 mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%r4}, {%r0, %r1, %r2, %r3}", "without a guard"},
		// shared variables
		{"ld.shared.v4.f32 {%r0, %r1, %r2, %r3}, [tile+8]", "16 bytes at offset 8 of shared variable tile, which is aligned to 16; want multiples of 16"},
		{"ld.shared.v2.f32 {%r0, %r1}, [word]", "8 bytes at offset 0 of shared variable word, which is aligned to 4"},
		{"st.shared.f32 [tile+2], %r0", "4 bytes at offset 2"},
		{"st.shared.f32 [room+2], %r0", "4 bytes at offset 2"},
		{"st.shared.v4.f32 [room+8], {%r0, %r1, %r2, %r3}", "16 bytes at offset 8"},
		{"atom.shared.add.u64 %d0, [tile+4], %d1", "8 bytes at offset 4"},
		{"cp.async.cg.shared.global [word], [%d0], 16", "16 bytes at offset 0"},
		{"cp.async.ca.shared.global [tile+4], [%d0], 8", "8 bytes at offset 4"},
		{"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [tile+8]", "16 bytes at offset 8"},
		{"ld.shared.f32 %r0, [tile+64]", "bytes 64 to 67 of shared variable tile, which has 64"},
		{"ld.shared.v4.f32 {%r0, %r1, %r2, %r3}, [tile+52]", "bytes 52 to 67"},
		{"ld.shared.f32 %r0, [tile+-4]", "bytes -4 to -1"},
		{"ld.shared.f32 %r0, [room+-4]", "bytes -4 to -1"},
		{"mov.u32 %r8, tile; ld.shared.v4.f32 {%r0, %r1, %r2, %r3}, [%r8+8]", "[%r8+8];: 16 bytes at offset 8"},
		{"mov.u32 %r8, tile; st.shared.f32 [%r8+64], %r0", "bytes 64 to 67"},
		{"@%p0 mov.u32 %r8, room; @%p0 st.shared.f32 [%r8+2], %r0", "4 bytes at offset 2"},
		// versions
		{"griddepcontrol.wait", "it needs version 7.8; the module has 7.4"},
		// labels
		{"END: mov.b32 %r0, 0", `label "END"; want a name`},
		{"tile: mov.b32 %r0, 0", `label "tile"; want a name`},
		{"n: mov.b32 %r0, 0", `label "n"; want a name`},
		{"room: mov.b32 %r0, 0", `label "room"; want a name`},
		// reads
		{"mov.b32 %r0, %r8", "mov.b32 %r0, %r8;: %r8 is read on a way on which nothing has been written to it"},
	} {
		err := verifyText(t, kernelText("7.4", "sm_80", tc.in+";"))
		if err == nil || !strings.Contains(err.Error(), "ptx: invalid: kernel k: ") || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v; want %q", tc.in, err, tc.want)
		}
	}
}

// TestVersions wants what each target and instruction needs.
func TestVersions(t *testing.T) {
	for _, tc := range []struct{ version, target, in, want string }{
		{"7.0", "sm_80", "membar.gl", ""},
		{"6.5", "sm_80", "membar.gl", "version 6.5; sm_80 wants 7.0"},
		{"7.7", "sm_90", "membar.gl", "version 7.7; sm_90 wants 7.8"},
		{"7.8", "sm_90a", "membar.gl", "version 7.8; sm_90a wants 8.0"},
		{"7.10", "sm_80", "membar.gl", "version 7.10"},
		{"8.0", "sm_75", "membar.gl", `target "sm_75"; want sm_80, sm_90 or sm_90a`},
		{"7.3", "sm_80", "ld.global.L1::no_allocate.f32 %r0, [%d0]", "it needs version 7.4; the module has 7.3"},
		{"7.8", "sm_80", "griddepcontrol.wait", "it needs target sm_90; the module has sm_80"},
	} {
		err := verifyText(t, kernelText(tc.version, tc.target, tc.in+";"))
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s %s %s: %v; want %q", tc.version, tc.target, tc.in, err, tc.want)
		}
	}
}

// TestModuleRules breaks one rule of a good module at a time.
func TestModuleRules(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(*Module)
		want string
	}{
		{"good", func(*Module) {}, ""},
		{"no dynamic part", func(m *Module) { m.Dynamic = nil }, ""},
		{"negative version", func(m *Module) { m.Major, m.Minor = 8, -1 }, "version 8.-1"},
		{"name of the dynamic part", func(m *Module) { m.Dynamic.Name = "1x" }, `shared variable "1x"`},
		{"alignment of the dynamic part", func(m *Module) { m.Dynamic.Align = 12 }, "aligned to 12 bytes"},
		{"size of the dynamic part", func(m *Module) { m.Dynamic.Bytes = 4 }, "has 4 bytes; want 0"},
		{"kernel without a name", func(m *Module) { m.Kernels[0].Name = "" }, `kernel ""`},
		{"two kernels of a name", func(m *Module) { m.Kernels[1].Name = "scale" }, `kernel "scale"`},
		{"kernel named like the dynamic part", func(m *Module) { m.Kernels[1].Name = "room" }, `kernel "room"`},
		{"too many threads", func(m *Module) { m.Kernels[0].Threads = 1025 }, "1025 threads; want at most 1024"},
		{"negative threads", func(m *Module) { m.Kernels[0].Threads = -1 }, "-1 threads"},
		{"blocks without threads", func(m *Module) { m.Kernels[0].Threads = 0 }, "2 blocks on a multiprocessor with 0 threads"},
		{"negative blocks", func(m *Module) { m.Kernels[0].Blocks = -1 }, "-1 blocks"},
		{"too many parameters", func(m *Module) { m.Kernels[0].Params = make([]Param, 513) }, "513 parameters"},
		{"name of a parameter", func(m *Module) { m.Kernels[0].Params[0].Name = "a.b" }, `parameter "a.b"`},
		{"parameter named like a kernel", func(m *Module) { m.Kernels[0].Params[0].Name = m.Kernels[1].Name }, "no kernel"},
		{"parameter named like its kernel", func(m *Module) { m.Kernels[0].Params[0].Name = m.Kernels[0].Name }, "no kernel"},
		{"two parameters of a name", func(m *Module) { m.Kernels[0].Params[1].Name = "x" }, `parameter "x"`},
		{"small parameter", func(m *Module) { m.Kernels[0].Params[1].Type = U16 }, "parameter n has type .u16; want .b32, .u32"},
		{"parameter of no type", func(m *Module) { m.Kernels[0].Params[1].Type = NoType }, "parameter n has type .; want .b32"},
		{"pair as a parameter", func(m *Module) { m.Kernels[0].Params[1].Type = F16x2 }, "parameter n has type .f16x2; want .b32"},
		{"registers of no class", func(m *Module) { m.Kernels[0].Regs[NoClass] = 1 }, "1 registers %?"},
		{"negative registers", func(m *Module) { m.Kernels[0].Regs[H] = -1 }, "-1 registers %h"},
		{"too many registers", func(m *Module) { m.Kernels[0].Regs[H] = 1<<20 + 1 }, "1048577 registers %h"},
		{"name of a shared variable", func(m *Module) { m.Kernels[0].Shared[0].Name = "ti-le" }, `shared variable "ti-le"`},
		{"shared variable named like a kernel", func(m *Module) { m.Kernels[0].Shared[0].Name = m.Kernels[1].Name }, "no kernel"},
		{"shared variable named like a parameter", func(m *Module) { m.Kernels[0].Shared[0].Name = "x" }, `shared variable "x"`},
		{"shared variable named like the dynamic part", func(m *Module) { m.Kernels[0].Shared[0].Name = "room" }, `shared variable "room"`},
		{"alignment of a shared variable", func(m *Module) { m.Kernels[0].Shared[0].Align = 0 }, "tile is aligned to 0 bytes"},
		{"huge alignment", func(m *Module) { m.Kernels[0].Shared[0].Align = 1 << 13 }, "tile is aligned to 8192 bytes"},
		{"shared variable without bytes", func(m *Module) { m.Kernels[0].Shared[0].Bytes = 0 }, "tile has 0 bytes"},
		{"shared variable too large", func(m *Module) { m.Kernels[0].Shared[0].Bytes = 49153 }, "tile has 49153 bytes"},
		{"shared variables too large", func(m *Module) {
			m.Kernels[0].Shared = append(m.Kernels[0].Shared, Var{"odd", 1, 1}, Var{"rest", 4096, 45057})
		}, "shared variables up to rest take 49153 bytes; want"},
		{"name of a label", func(m *Module) { m.Kernels[0].Body[5].Label = "" }, `label ""`},
		{"label and instruction", func(m *Module) { m.Kernels[0].Body[6].Label = "L9" }, "statement 7 is both label L9 and setp"},
		{"negated without a guard", func(m *Module) { m.Kernels[0].Body[6].Inst.Negated = true }, "statement 7: setp.ge.u32 %p0, %r1, %r0;: it is negated without a guard"},
		{"guard below 0", func(m *Module) { m.Kernels[0].Body[7].Inst.Guard.ID = -1 }, "register %p-1 is not declared"},
		{"guard of no class", func(m *Module) { m.Kernels[0].Body[7].Inst.Guard.Class = 9 }, "its guard is %?0"},
		{"register of no class", func(m *Module) { m.Kernels[0].Body[8].Inst.Args[0].Reg.Class = 9 }, "operand 1, %?1, does not fit"},
		{"operand of no kind", func(m *Module) { m.Kernels[0].Body[8].Inst.Args[0].Kind = 99 }, "operand 1, ?, does not fit"},
		{"special register of no kind", func(m *Module) { m.Kernels[0].Body[3].Inst.Args[1].Kind = 99 }, "operand 2, ?, does not fit"},
		{"type as a modifier", func(m *Module) {
			in := m.Kernels[0].Body[10].Inst
			in.Mods, in.Types = []string{"rn", "f32"}, nil
		}, "it has 2 modifiers and 0 types; want 1 and 1"},
		{"two parts in one", func(m *Module) {
			in := m.Kernels[0].Body[10].Inst
			in.Op, in.Mods = "mul.rn", nil
		}, "it has 0 modifiers and 1 types; want 1 and 1"},
		{"type that there is not", func(m *Module) { m.Kernels[0].Body[10].Inst.Types[0] = 99 }, "no instruction that is known"},
		{"bits of a float beyond 32", func(m *Module) { m.Kernels[0].Body[10].Inst.Args[2].Int = 1 << 32 }, "operand 3"},
		{"no body", func(m *Module) { m.Kernels[1].Body = nil }, "kernel nothing: its body has no end"},
		{"label at the end", func(m *Module) { m.Kernels[1].Body = append(m.Kernels[1].Body, Stmt{Label: "X"}) }, "its body has no end"},
		{"guarded end", func(m *Module) {
			k := m.Kernels[0]
			k.Body[len(k.Body)-1].Inst.Guard = Reg{P, 0}
		}, "its body has no end"},
		{"guarded branch at the end", func(m *Module) {
			k := m.Kernels[0]
			*k.Body[len(k.Body)-1].Inst = *k.Body[7].Inst
		}, "its body has no end"},
		{"another instruction at the end", func(m *Module) {
			m.Kernels[1].Body[0].Inst.Op = "membar"
			m.Kernels[1].Body[0].Inst.Mods = []string{"gl"}
		}, "its body has no end"},
		{"branch at the end", func(m *Module) {
			k := m.Kernels[0]
			in := *k.Body[7].Inst
			in.Guard = Reg{}
			k.Body[len(k.Body)-1].Inst = &in
		}, ""},
	} {
		m := sample()
		tc.edit(m)
		err := m.Verify()
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v; want %q", tc.name, err, tc.want)
		}
	}
}
