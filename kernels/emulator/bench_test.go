package emulator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pce-engine/pce/kernels/cuda"
)

// seconds is the clock of the benchmarks.
var seconds = func() float64 { return float64(time.Now().UnixNano()) / 1e9 }

// BenchmarkInstructions measures lane instructions a second of loops that are
// mostly one instruction, on one goroutine.
func BenchmarkInstructions(b *testing.B) {
	for _, c := range []struct{ name, inst string }{
		{"add", "add.u32 %r3, %r3, %r4;"},
		{"mad", "mad.lo.u32 %r3, %r3, %r4, %r5;"},
		{"fma", "fma.rn.f32 %r6, %r7, %r8, %r6;"},
		{"mul", "mul.rn.f32 %r6, %r7, %r8;"},
		{"setp", "setp.lt.f32 %p2, %r7, %r8;"},
		{"guarded", "@%p1 add.u32 %r3, %r3, %r4;"},
		{"wide", "mad.wide.u32 %d6, %r3, 4, %d7;"},
		{"pack", "cvt.rn.f16x2.f32 %r6, %r7, %r8;"},
		{"shuffle", "shfl.sync.bfly.b32 %r6, %r7, 1, 31, -1;"},
		{"global", "ld.global.u32 %r6, [%d4];"},
		{"vector", "ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%d8];"},
		{"store", "st.global.u32 [%d4], %r6;"},
		{"shared", "ld.shared.u32 %r6, [%r9];"},
		{"sharedvector", "ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r14];"},
		{"sharedstore", "st.shared.v4.u32 [%r14], {%r10, %r11, %r12, %r13};"},
		{"ldmatrix", "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r14];"},
		{"mma", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r16, %r17, %r18, %r19}, {%r10, %r11, %r12, %r13}, {%r7, %r8}, {%r16, %r17, %r18, %r19};"},
	} {
		b.Run("op="+c.name, func(b *testing.B) { benchmarkLoop(b, c.inst, Options{Threads: 1}) })
	}
	b.Run("op=mma/model=hopper", func(b *testing.B) {
		benchmarkLoop(b, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r16, %r17, %r18, %r19}, {%r10, %r11, %r12, %r13}, {%r7, %r8}, {%r16, %r17, %r18, %r19};",
			Options{Threads: 1, MMA: MMA{Group: 16, ExtraBits: 2}})
	})
}

func benchmarkLoop(b *testing.B, inst string, o Options) {
	const times, copies = 200, 16
	e := newBench(b, o)
	body := `
	ld.param.u64 %d0, [x];
	mov.u32 %r0, %tid.x;
	mul.wide.u32 %d3, %r0, 4;
	add.u64 %d4, %d0, %d3;
	mul.wide.u32 %d3, %r0, 16;
	add.u64 %d8, %d0, %d3;
	mov.u32 %r1, room;
	mov.u32 %r2, 0;
	mov.u32 %r3, %r0;
	mov.u32 %r4, 3;
	mov.u32 %r5, 5;
	mov.f32 %r6, 0f3f800000;
	mov.f32 %r7, 0f3f810000;
	mov.f32 %r8, 0f3f820000;
	mov.u64 %d7, 64;
	mad.lo.u32 %r9, %r0, 4, %r1;
	mad.lo.u32 %r14, %r0, 16, %r1;
	mov.b32 %r10, 1;
	mov.b32 %r11, 2;
	mov.b32 %r12, 3;
	mov.b32 %r13, 4;
	mov.b32 %r16, 0;
	mov.b32 %r17, 0;
	mov.b32 %r18, 0;
	mov.b32 %r19, 0;
	st.shared.v4.u32 [%r14], {%r10, %r11, %r12, %r13};
	bar.sync 0;
	setp.lt.u32 %p1, %r0, 200;
	setp.lt.u32 %p1, %r5, 200;
LOOP:
` + strings.Repeat("\t"+inst+"\n", copies) + fmt.Sprintf(`
	add.u32 %%r2, %%r2, 1;
	setp.lt.u32 %%p0, %%r2, %d;
	@%%p0 bra LOOP;
`, times)
	f := e.load(text(".param .u64 x", body), 0)
	p, err := e.Alloc(1 << 16)
	if err != nil {
		b.Fatal(err)
	}
	if err := e.Clear(p, 1<<16, e.s); err != nil {
		b.Fatal(err)
	}
	start := seconds()
	for b.Loop() {
		if err := e.launch(cuda.Launch{Function: f, Grid: [3]int{1, 1, 1}, Block: 128, Args: []uint64{uint64(p)}}); err != nil {
			b.Fatal(err)
		}
	}
	c := e.Counts()["test"]
	perSecond := func(n uint64) float64 { return float64(n) / (seconds() - start) / 1e6 }
	b.ReportMetric(perSecond(c.Integer+c.FMA+c.Float+c.Convert+c.LoadGlobal+c.StoreGlobal+c.LoadShared+c.StoreShared+c.Shuffle+c.Control+c.Matrix+c.LoadMatrix), "Mlanes/s")
	if c.Matrix > 0 {
		b.ReportMetric(2*perSecond(c.MultiplyAdds), "Mflop/s")
	}
}

// BenchmarkLaunch measures what a small launch costs besides its instructions.
func BenchmarkLaunch(b *testing.B) {
	for _, blocks := range []int{1, 64} {
		b.Run(fmt.Sprintf("blocks=%d", blocks), func(b *testing.B) {
			e := newBench(b, Options{Threads: 1})
			f := e.load(text("", "\tmov.u32 %r0, %tid.x;"), 0)
			for b.Loop() {
				if err := e.launch(cuda.Launch{Function: f, Grid: [3]int{blocks, 1, 1}, Block: 256}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkLoad measures how fast text becomes operations.
func BenchmarkLoad(b *testing.B) {
	module := []byte(text("", strings.Repeat("\tmov.u32 %r0, %tid.x;\n\tmad.lo.u32 %r1, %r0, 5, %r0;\n", 500)))
	e := newBench(b, Options{})
	b.SetBytes(int64(len(module)))
	for b.Loop() {
		m, err := e.Load(module)
		if err != nil {
			b.Fatal(err)
		}
		if err := e.Unload(m); err != nil {
			b.Fatal(err)
		}
	}
}
