package cpu_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu"
)

// note is a module of its kind that says nothing.
type note string

func (n note) ModuleKind() string { return string(n) }

// loaded is the program of a note.
type loaded struct {
	by, kind string
	freed    *[]string
}

func (p *loaded) Free() { *p.freed = append(*p.freed, p.kind) }

// TestLoaders wants modules to come to the loader of their kind, with the device, and
// those of no loader to be refused with the kinds that there are.
func TestLoaders(t *testing.T) {
	ctx := t.Context()
	failed := errors.New("failed")
	var freed []string
	loader := func(by string) func(context.Context, *cpu.Device, kernels.Module) (kernels.Program, error) {
		return func(_ context.Context, d *cpu.Device, m kernels.Module) (kernels.Program, error) {
			if d.Threads() != 3 {
				t.Errorf("a loader has a device of %d threads, want 3", d.Threads())
			}
			if by == "broken" {
				return nil, failed
			}
			return &loaded{by, m.ModuleKind(), &freed}, nil
		}
	}
	loaders := cpu.Loaders{"red": loader("r"), "blue": loader("b"), "broken": loader("broken")}
	d, err := cpu.Open(cpu.Options{Threads: 3, Loaders: loaders})
	if err != nil {
		t.Fatal(err)
	}
	loaders["late"] = loader("l") // the device keeps what it was opened with
	for kind, by := range map[string]string{"red": "r", "blue": "b"} {
		p, err := kernels.LoadAs[*loaded](ctx, d, note(kind))
		if err != nil || p.by != by || p.kind != kind {
			t.Errorf("%s: %+v, %v", kind, p, err)
		}
	}
	if _, err := d.Load(ctx, note("broken")); !errors.Is(err, failed) {
		t.Errorf("a loader's error: %v", err)
	}
	for _, kind := range []string{"late", "", "Red"} {
		if p, err := d.Load(ctx, note(kind)); p != nil || !errors.Is(err, kernels.ErrDevice) || strings.Contains(err.Error(), "\n") ||
			!strings.Contains(err.Error(), `["blue" "broken" "red"]`) {
			t.Errorf("kind %q: %v, %v", kind, p, err)
		}
	}
	freed = nil
	if p, err := kernels.LoadAs[kernels.CodeProgram](ctx, d, note("red")); p != nil || !errors.Is(err, kernels.ErrDevice) ||
		!strings.Contains(err.Error(), "kernels.CodeProgram") || strings.Contains(err.Error(), "\n") {
		t.Errorf("a program of another kind: %v, %v", p, err)
	}
	if !slices.Equal(freed, []string{"red"}) {
		t.Errorf("of it %v was freed, want it once", freed)
	}
	bare, err := cpu.Open(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bare.Load(ctx, note("red")); !errors.Is(err, kernels.ErrDevice) {
		t.Errorf("a device without loaders: %v", err)
	}
}
