package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/pce-engine/pce/kernels/emulator"
)

// readings runs a part on an emulator and returns what it prints.
func readings(t *testing.T, o emulator.Options, part func(*probe) error) map[string]reading {
	t.Helper()
	e := emulator.New(o)
	var out bytes.Buffer
	p := &probe{drv: e, card: e.Card(), tiny: true, out: json.NewEncoder(&out)}
	var err error
	if p.stream, err = e.NewStream(); err != nil {
		t.Fatal(err)
	}
	if err := part(p); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	list := map[string]reading{}
	for lines := bufio.NewScanner(&out); lines.Scan(); {
		var r reading
		if err := json.Unmarshal(lines.Bytes(), &r); err == nil && r.Reading != "" {
			list[r.Reading] = r
		}
	}
	return list
}

// TestParts wants every part to end on the emulator and every reading to be a number.
func TestParts(t *testing.T) {
	for name, want := range map[string][]string{
		"warmup":    {"warm-up"},
		"ceilings":  {"memory", "second-level cache", "latency of memory", "copies from the host", "products of TF32", "products of float16", "float32", "gap of an empty graph", "gap within a graph", "entry to the driver"},
		"products":  {"matrix products of TF32 that differ", "matrix products of float16 that differ"},
		"functions": {"results of ex2 that are off", "results of lg2 that are off", "worst error of ex2"},
		"variants":  {"kernels with local memory"},
	} {
		var out strings.Builder
		if err := run([]string{"-device", "emulator", "-tiny", "-part", name}, &out); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, reading := range want {
			if !strings.Contains(out.String(), `"reading":"`+reading+`"`) {
				t.Errorf("%s has no reading %q", name, reading)
			}
		}
	}
	for _, args := range [][]string{{"-part", "warmup", "-device", "gpu"}, {"-device", "emulator", "-part", "other"}, {"-device", "emulator"}} {
		if err := run(args, &strings.Builder{}); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}

// TestProducts wants cards that add in another way than the emulator assumes of them to
// be told from others, and the right way to be named.
func TestProducts(t *testing.T) {
	for _, c := range []struct {
		major   int
		adds    emulator.MMA
		nearest string // "" where the assumption holds
	}{
		{9, hopper, ""},
		{8, ampere, ""},
		{9, ampere, "groups of 8 with 1 more bits"},
		{8, hopper, "groups of 16 with 2 more bits"},
		{9, emulator.MMA{Group: 8, ExtraBits: 3}, "groups of 8 with 3 more bits"},
	} {
		for name, r := range readings(t, emulator.Options{Major: c.major, MMA: c.adds}, (*probe).products) {
			holds := r.Value == 0 && !strings.Contains(r.Note, "NOT")
			if holds != (c.nearest == "") || !holds && !strings.Contains(r.Note, c.nearest+", off in 0") {
				t.Errorf("a card of %d.0 that adds as %+v: %s: %v %s", c.major, c.adds, name, r.Value, r.Note)
			}
		}
	}
}

// TestFunctions wants errors beyond the assumption to be counted, and NaN.
func TestFunctions(t *testing.T) {
	for _, approx := range []uint64{0, 1, 7} {
		for name, r := range readings(t, emulator.Options{Approx: approx}, (*probe).functions) {
			if strings.HasPrefix(name, "results") && r.Value != 0 {
				t.Errorf("approximations of seed %d: %s: %v %s", approx, name, r.Value, r.Note)
			}
		}
	}
	s := &specials[0]
	for _, c := range []struct {
		off   float32 // what 2^1 is
		wrong float64
	}{{2, 0}, {math.Nextafter32(2, 3), 0}, {2 + 3*0x1p-22, 1}, {float32(math.NaN()), 1}, {float32(math.Inf(1)), 1}} {
		var out bytes.Buffer
		p := &probe{out: json.NewEncoder(&out)}
		args := []uint32{math.Float32bits(3), math.Float32bits(1)}
		if err := p.judge(s, args, []uint32{math.Float32bits(8), math.Float32bits(c.off)}); err != nil {
			t.Fatal(err)
		}
		var r reading
		if err := json.NewDecoder(&out).Decode(&r); err != nil || r.Value != c.wrong {
			t.Errorf("2^1 = %v: %+v, %v", c.off, r, err)
		}
	}
}
