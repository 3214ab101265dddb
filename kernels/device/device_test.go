package device_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu"
	cputensor "github.com/pce-engine/pce/kernels/cpu/tensor"
	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/cuda/tensor/plan"
	"github.com/pce-engine/pce/kernels/device"
	"github.com/pce-engine/pce/kernels/emulator"
	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/layers"
)

// unregistered is what Find says of the emulator before any test registers it.
var unregistered = func() error {
	_, err := device.Find("emulator")
	return err
}()

// TestFind wants devices by name before and after one is registered, and an error
// that lists those that there are.
func TestFind(t *testing.T) {
	if err := unregistered; !errors.Is(err, kernels.ErrDevice) || err.Error() != `kernels: device: no device "emulator"; use auto, cpu, cuda or cuda:1` {
		t.Errorf("the emulator without its registration: %v", err)
	}
	device.Register(emulator.Kind)
	for name, good := range map[string]bool{
		"": true, "auto": true, "cpu": true, "cuda": true, "cuda:0": true, "cuda:17": true, "emulator": true,
		"abacus": false, "CPU": false, "cpu:0": false, "cpu:": false, "cuda:": false, "cuda:-1": false, "cuda:x": false, "auto:1": false, "emulator:0": false, ":1": false, "cuda:1:2": false,
	} {
		_, err := device.Find(name)
		if good != (err == nil) || err != nil && !errors.Is(err, kernels.ErrDevice) {
			t.Errorf("%q: %v", name, err)
		}
		if want := fmt.Sprintf("no device %q; use auto, cpu, cuda, cuda:1, emulator", name); err != nil && !strings.Contains(strings.Replace(err.Error(), " or ", ", ", 1), want) {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
}

// TestAuto wants the first device that the machine has, and never one that does not
// say whether it is there.
func TestAuto(t *testing.T) {
	want := "cpu"
	if cards, err := cuda.Cards(); err == nil && len(cards) > 0 {
		want = "cuda:0"
	}
	for _, name := range []string{"", "auto"} {
		at, err := device.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if info, _, err := at.Probe(device.Options{}); err != nil || info.Name != want {
			t.Errorf("%q is %q, %v; want %s", name, info.Name, err, want)
		}
	}
}

// TestProbe describes the CPU on each of its paths, and the emulator, which has one.
func TestProbe(t *testing.T) {
	device.Register(emulator.Kind)
	find := func(name string) device.Place {
		t.Helper()
		at, err := device.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	for _, path := range cpu.KernelPaths() {
		info, paths, err := find("cpu").Probe(device.Options{Threads: 3, KernelPath: path})
		if err != nil || info.Name != "cpu" || info.KernelPath != path || info.Threads != 3 || !slices.Equal(paths, cpu.KernelPaths()) {
			t.Errorf("cpu with %s: %+v, %v, %v", path, info, paths, err)
		}
	}
	info, paths, err := find("emulator").Probe(device.Options{})
	if err != nil || info.Name != "emulator" || !slices.Equal(paths, []string{info.KernelPath}) {
		t.Errorf("emulator: %+v, %v, %v", info, paths, err)
	}
	for _, tc := range []struct{ name, path, words string }{
		{"cpu", "mmx", `"mmx" on this machine; use `},
		{"emulator", "generic", `kernel path "generic" on device "emulator"; it is for the CPU alone, set the device to cpu`},
		{"cuda:1", "generic", `kernel path "generic" on device "cuda:1"`},
	} {
		o := device.Options{KernelPath: tc.path}
		for what, err := range map[string]error{"Check": find(tc.name).Check(o), "Open": opened(find(tc.name).Open(o)), "Plan": planned(find(tc.name).Plan(layers.Module{}, o))} {
			if !errors.Is(err, kernels.ErrDevice) || !strings.Contains(err.Error(), tc.words) {
				t.Errorf("%s of %s with %s: %v", what, tc.name, tc.path, err)
			}
		}
	}
}

func opened(d kernels.Device, err error) error {
	if err == nil {
		return d.Close()
	}
	return err
}

func planned(_ device.Memory, err error) error { return err }

// TestRegister replaces a kind by another of its name, which then opens.
func TestRegister(t *testing.T) {
	broken := errors.New("broken")
	for _, err := range []error{errors.New("replaced"), broken} {
		device.Register(device.Driven("toy", func(device.Options) (cuda.Driver, error) { return nil, err }))
		names := device.Names()
		if names = slices.DeleteFunc(names, func(name string) bool { return name != "toy" }); len(names) != 1 {
			t.Errorf("%d kinds of the name toy, want 1", len(names))
		}
	}
	at, err := device.Find("toy")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := at.Open(device.Options{}); !errors.Is(err, broken) {
		t.Errorf("Open: %v, want the later one's error", err)
	}
}

// TestPlan wants room for the rows of a launch, and of the next one where these are
// copied meanwhile, beside what the device's own plan says.
func TestPlan(t *testing.T) {
	device.Register(emulator.Kind)
	g, err := structures.HMM(structures.HMMOptions{Length: 5, Latents: 8, Leaf: func(int) circuit.Leaf { return circuit.Categorical{Categories: 4} }})
	if err != nil {
		t.Fatal(err)
	}
	r, err := compile.Compile(g, compile.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	m := layers.Module{Program: r.Program, Rows: 64, Train: true}
	onCPU, err := cputensor.Plan(m, cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	onCard, err := plan.MemoryOf(m)
	if err != nil {
		t.Fatal(err)
	}
	cells := int64(64 * (5*2 + 8)) // codes of 2 bytes and a log-likelihood
	for name, want := range map[string]device.Memory{
		"cpu":      {Values: onCPU.Values + cells, Flows: onCPU.Flows, Scratch: onCPU.Scratch},
		"cuda":     {Values: onCard.Values + 2*cells, Flows: onCard.Flows, Scratch: onCard.Scratch, Program: onCard.Program},
		"emulator": {Values: onCard.Values + 2*cells, Flows: onCard.Flows, Scratch: onCard.Scratch, Program: onCard.Program},
	} {
		at, err := device.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := at.Plan(m, device.Options{Threads: 2}); err != nil || got != want || got.Values == 2*cells {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
		if _, err := at.Plan(layers.Module{Program: r.Program, Rows: 0}, device.Options{}); !errors.Is(err, kernels.ErrDevice) {
			t.Errorf("%s: launches of no rows: %v", name, err)
		}
	}
}

// TestPlanCode wants the plan of code to have room for a call on each of the threads, on each kernel path of the CPU.
func TestPlanCode(t *testing.T) {
	b := simt.NewBuilder("constants")
	in, out := b.Input("x", simt.F64, simt.Columns, 1), b.Output("y", simt.F64, simt.Columns, 1)
	y := b.Load(in, 0)
	for i := range 3000 {
		y = b.Mul(y, b.Float(simt.F64, 1+1/float64(i+1)))
	}
	b.Store(out, 0, y)
	m, err := b.Module()
	if err != nil {
		t.Fatal(err)
	}
	at, err := device.Find("cpu")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range cpu.KernelPaths() {
		call, program, err := cpu.PlanCode(m, path)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := at.PlanCode(m, device.Options{Threads: 3, KernelPath: path})
		if want := (device.Memory{Scratch: 3 * call, Program: program, Threads: 3}); err != nil || plan != want {
			t.Errorf("%s: %+v, %v; want %+v", path, plan, err, want)
		}
	}
}
