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
