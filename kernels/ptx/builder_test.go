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

// TestRepeat tests the condition behind the body, which every thread runs once.
func TestRepeat(t *testing.T) {
	b := NewKernel("k", 32, 0)
	i := b.Mov(U32, 0)
	b.Repeat(func() Value {
		b.Into(i).Add(i, 1)
		return b.Lt(i, 3)
	})
	var got []string
	for _, s := range b.Kernel().Body {
		if s.Inst == nil {
			got = append(got, s.Label+":")
		} else {
			got = append(got, s.Inst.String())
		}
	}
	if want := []string{"mov.u32 %r0, 0;", "L1:", "add.u32 %r0, %r0, 1;", "setp.lt.u32 %p0, %r0, 3;", "@%p0 bra L1;", "ret;"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
