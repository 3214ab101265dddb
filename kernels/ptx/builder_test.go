package ptx

import (
	"slices"
	"testing"
)

// TestPowersOfTwo divides by literals: unsigned numbers by powers of two are shifted.
func TestPowersOfTwo(t *testing.T) {
	for _, c := range []struct {
		of        Type
		by        int
		quotient  string
		remainder string
	}{
		{U32, 1, "shr.u32 %r1, %r0, 0;", "and.b32 %r2, %r0, 0;"},
		{U32, 32, "shr.u32 %r1, %r0, 5;", "and.b32 %r2, %r0, 31;"},
		{U32, 48, "div.u32 %r1, %r0, 48;", "rem.u32 %r2, %r0, 48;"},
		{S32, 32, "div.s32 %r1, %r0, 32;", "rem.s32 %r2, %r0, 32;"},
	} {
		b := NewKernel("k", 32, 0)
		x := b.Var(c.of)
		b.Div(x, c.by)
		b.Rem(x, c.by)
		var got []string
		for _, s := range b.Kernel().Body {
			got = append(got, s.Inst.String())
		}
		if want := []string{c.quotient, c.remainder}; !slices.Equal(got[:2], want) {
			t.Errorf("by %d: %q, want %q", c.by, got, want)
		}
	}
}
