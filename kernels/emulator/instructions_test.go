package emulator

import "testing"

// TestInstructionCounts counts what two launches of a kernel of one warp run.
func TestInstructionCounts(t *testing.T) {
	b := newBench(t, Options{})
	out := b.room(32)
	body := `
	mov.f32 %r8, 0f3F800000;
	fma.rn.f32 %r8, %r8, %r8, %r8;
	fma.rn.f32 %r8, %r8, %r8, %r8;
	mad.wide.u32 %d6, %r0, 4, %d0;
	st.global.f32 [%d6], %r8;
`
	for range 2 {
		b.must(body, 1, 32, uint64(out), 0, 0)
	}
	got := b.Instructions()
	for key, want := range map[string]int64{
		"launches": 2, "fma": 128, "store_global": 64, "bytes_stored": 256,
		"test.launches": 2, "test.fma": 128, "test.store_global": 64, "test.bytes_stored": 256,
	} {
		if got[key] != want {
			t.Errorf("%s: %d, want %d", key, got[key], want)
		}
	}
	if _, ok := got["mma"]; ok {
		t.Error("mma is counted; no kernel runs any")
	}
	if got["integer"] != got["test.integer"] || got["integer"] < 128 {
		t.Errorf("%d integer instructions in all, %d of the kernel; want the same, two a lane and launch at least", got["integer"], got["test.integer"])
	}
	b.ResetCounts()
	if got := b.Instructions(); len(got) != 0 {
		t.Errorf("after ResetCounts: %v", got)
	}
}

// TestIssued counts what warps issue: an instruction once for each warp, whatever lanes
// run it, and where its guard holds for none; nothing of what is jumped over.
func TestIssued(t *testing.T) {
	b := newBench(t, Options{})
	out := uint64(b.room(64))
	issued := func(body string, threads int) int64 {
		b.ResetCounts()
		b.must(body, 1, threads, out, 0, 0)
		return b.Instructions()["issued"]
	}
	const none, lane, warp = "setp.ge.u32 %p0, %r0, 1000;\n", "setp.eq.u32 %p0, %r0, 0;\n", "setp.lt.u32 %p0, %r0, 32;\n"
	least := issued(none, 64)
	for _, c := range []struct {
		name, body string
		more       int64 // than the comparison alone
	}{
		{"all lanes", none + "mov.u32 %r8, 1;", 2},
		{"no lane", none + "@%p0 mov.u32 %r8, 1;", 2},
		{"one lane of one warp", lane + "@%p0 mov.u32 %r8, 1;", 2},
		{"a branch that one warp takes", warp + "@%p0 bra OUT;\nmov.u32 %r8, 1;\nmov.u32 %r9, 2;\nOUT:", 2 + 2},
	} {
		if got := issued(c.body, 64); got != least+c.more {
			t.Errorf("%s: %d instructions, want %d and %d of the comparison", c.name, got, c.more, least)
		}
	}
	if one := issued(none, 32); 2*one != least {
		t.Errorf("one warp issues %d instructions, two issue %d", one, least)
	}
}

// TestLongLog logs more launches than are kept, and wants the last ones.
func TestLongLog(t *testing.T) {
	b := newBench(t, Options{})
	for n := range 5*mostLog + 7 {
		b.note(Record{Block: n})
		if n+1 < mostLog && n%1000 > 0 {
			continue
		}
		if len(b.log) > 2*mostLog || len(b.log) < min(n+1, mostLog) || b.log[len(b.log)-1].Block != n || b.log[0].Block != n+1-len(b.log) {
			t.Fatalf("after %d launches the log has %d, from %d to %d", n+1, len(b.log), b.log[0].Block, b.log[len(b.log)-1].Block)
		}
	}
	if log := b.Log(); len(log) != len(b.log) {
		t.Errorf("Log returns %d launches of %d", len(log), len(b.log))
	}
}
