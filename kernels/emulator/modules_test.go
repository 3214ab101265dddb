package emulator

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/pce-engine/pce/kernels/emulator/lanes"
)

// TestDecodedOnce wants a module decoded once for emulators that run it alike, again
// for others, and emulators that share it to share nothing else.
func TestDecodedOnce(t *testing.T) {
	code := []byte(text(".param .u64 out", "\tld.param.u64 %d0, [out];\n\tmov.u32 %r1, 7; // TestDecodedOnce\n\tst.global.u32 [%d0], %r1;"))
	one, two := newBench(t, Options{}), newBench(t, Options{Seed: 3, Threads: 1, Memory: 1 << 20})
	first := one.decodedModule(code)
	if first.err != nil {
		t.Fatal(first.err)
	}
	if two.decodedModule(code) != first {
		t.Error("options that change no operation have a module decoded again")
	}
	for what, o := range map[string]Options{"Approx": {Approx: 7}, "MMA": {MMA: MMA{Group: 16, ExtraBits: 2}}} {
		if newBench(t, o).decodedModule(code) == first {
			t.Errorf("options with %s take a module that was decoded without it", what)
		}
	}
	for _, set := range lanes.Sets() {
		e := New(Options{})
		if e.set = set; set != one.set && e.decodedModule(code) == first {
			t.Errorf("%s takes a module that was decoded for %s", set.Name, one.set.Name)
		}
	}
	if one.decodedModule(append([]byte("// \n"), code...)) == first {
		t.Error("a text takes another's module")
	}

	a, err := one.Load(code)
	if err != nil {
		t.Fatal(err)
	}
	b, err := two.Load(code)
	if err != nil {
		t.Fatal(err)
	}
	k := one.modules[a].kernels["test"]
	k.idle = append(k.idle, &block{})
	if other := two.modules[b].kernels["test"]; other == k || len(other.idle) > 0 || len(first.kernels[0].idle) > 0 {
		t.Error("emulators share the places of launches")
	}
}

// TestDecodedErrors wants the same refusal each time a text is loaded, and that of a
// target from each card that cannot run it.
func TestDecodedErrors(t *testing.T) {
	e := newBench(t, Options{})
	wrong := []byte(text("", "\tmov.u32 %r77, 1; // TestDecodedErrors"))
	_, once := e.Load(wrong)
	_, again := e.Load(wrong)
	if once == nil || again == nil || once.Error() != again.Error() {
		t.Errorf("the first Load says %v, the second %v", once, again)
	}
	code := []byte(text("", "\t// TestDecodedErrors"))
	if _, err := e.Load(code); err != nil {
		t.Error(err)
	}
	if _, err := newBench(t, Options{Major: 8}).Load(code); err == nil || !strings.Contains(err.Error(), "target sm_90 on a card of compute capability 8.0") {
		t.Errorf("a card of compute capability 8.0 says %v", err)
	}
}

// TestDecodedAreFew loads many modules, several at once: the last used ones are kept.
func TestDecodedAreFew(t *testing.T) {
	code := func(i int) []byte {
		return []byte(text("", fmt.Sprintf("\tmov.u32 %%r1, %d; // TestDecodedAreFew", i)))
	}
	e := newBench(t, Options{})
	kept := e.decodedModule(code(0))
	var wait sync.WaitGroup
	for g := range 4 {
		wait.Go(func() {
			for i := range maxDecoded {
				if m := e.decodedModule(code(1 + (g+i)%maxDecoded)); m.err != nil || len(m.kernels) != 1 {
					t.Errorf("module %d: %v", i, m.err)
				}
			}
		})
	}
	wait.Wait()
	if n := len(recent.list); n != maxDecoded {
		t.Errorf("%d modules are kept, want %d", n, maxDecoded)
	}
	if e.decodedModule(code(0)) == kept {
		t.Errorf("a module is kept after %d others", maxDecoded)
	}
	last := e.decodedModule(code(1))
	for i := range maxDecoded - 1 {
		e.decodedModule(code(2 + i))
		if e.decodedModule(code(1)) != last {
			t.Fatal("a module that is used again and again is decoded again")
		}
	}
}
