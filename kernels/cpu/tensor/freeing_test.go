package tensor

import (
	"context"
	"runtime"
	"testing"
	"weak"

	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/layers"
)

// TestFreedIsCollected wants the memory of a program to be the collector's once its
// engine is closed, although the engine and the device are still held.
func TestFreedIsCollected(t *testing.T) {
	ctx := t.Context()
	var workspace weak.Pointer[float32]
	var exec weak.Pointer[executor]
	dev, err := Open(cpu.Options{Threads: 2, Loaders: cpu.Loaders{layers.ModuleKind: func(ctx context.Context, d *cpu.Device, m kernels.Module) (kernels.Program, error) {
		p, err := Load(ctx, d, m)
		if err == nil {
			x := p.(*program).exec
			exec, workspace = weak.Make(x), weak.Make(&x.values[0])
		}
		return p, err
	}}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := compile.Compile(tree(t), compile.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(ctx, dev, r.Program, engine.Options{Rows: 16, Train: true})
	if err != nil {
		t.Fatal(err)
	}
	if dev.InUse() == 0 {
		t.Error("nothing in use with an engine")
	}
	runtime.GC()
	if exec.Value() == nil || workspace.Value() == nil {
		t.Fatal("the program of an open engine was collected")
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	if exec.Value() != nil || workspace.Value() != nil {
		t.Error("the program of a closed engine is still reachable")
	}
	if n := dev.InUse(); n != 0 {
		t.Errorf("%d bytes in use after Close", n)
	}
	runtime.KeepAlive(e)
	runtime.KeepAlive(dev)
}
