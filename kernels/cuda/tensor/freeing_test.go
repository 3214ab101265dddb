package tensor_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/emulator"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// accounts is a card that counts what its driver has given out.
type accounts struct {
	*emulator.Emulator
	held  held
	fails int // the AllocHost, Alloc or Captured that fails, counted down; 0: none does
}

// held is how much a driver has given out and has not got back.
type held struct{ allocations, graphs, hosts, events, modules int }

var errFull = errors.New("full")

func (a *accounts) full() bool {
	a.fails--
	return a.fails == 0
}

func (a *accounts) Alloc(bytes int64) (cuda.Ptr, error) {
	if a.full() {
		return 0, errFull
	}
	p, err := a.Emulator.Alloc(bytes)
	if err == nil {
		a.held.allocations++
	}
	return p, err
}

func (a *accounts) Free(p cuda.Ptr) error {
	a.held.allocations--
	return a.Emulator.Free(p)
}

func (a *accounts) Captured(s cuda.Stream) (cuda.Graph, error) {
	g, err := a.Emulator.Captured(s)
	if err == nil {
		a.held.graphs++
	}
	return g, err
}

func (a *accounts) FreeGraph(g cuda.Graph) error {
	a.held.graphs--
	return a.Emulator.FreeGraph(g)
}

func (a *accounts) AllocHost(n int) ([]byte, error) {
	if a.full() {
		return nil, errFull
	}
	a.held.hosts++
	return a.Emulator.AllocHost(n)
}

func (a *accounts) NewEvent() (cuda.Event, error) {
	a.held.events++
	return a.Emulator.NewEvent()
}

func (a *accounts) Load(text []byte) (cuda.Module, error) {
	a.held.modules++
	return a.Emulator.Load(text)
}

func (a *accounts) Unload(m cuda.Module) error {
	a.held.modules--
	return a.Emulator.Unload(m)
}

// TestFiftyEngines opens, uses and closes engines on one device, and wants the second
// and the fiftieth to need what the first one needed.
func TestFiftyEngines(t *testing.T) {
	if testing.Short() {
		t.Skip("fifty engines on the emulator; without -short")
	}
	card := &accounts{Emulator: emulator.New(emulator.Options{Strict: true})}
	dev := openOn(t, card)
	const rows = 5
	s := newSmall(t, 2, rows)
	before := card.held
	var first held
	var most int64
	for i := range 50 {
		m := s.build(t, dev)
		ll := make([]float64, rows)
		err := errors.Join(m.Engine.Step(t.Context(), s.batch, 0, rows, tensor.Rule{Step: 0.5, Pseudocount: 0.1}, ll), m.Engine.LogLikelihood(t.Context(), s.batch, ll))
		if err != nil {
			t.Fatal(err)
		}
		if card.held.graphs < 2 || card.held.allocations <= before.allocations {
			t.Fatalf("engine %d holds %+v", i, card.held)
		}
		if err := m.Engine.Close(); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first, most = card.held, dev.Allocated()
		}
		if card.held != first || card.held.graphs != 0 || card.held.allocations != before.allocations || dev.InUse() != 0 || dev.Allocated() != most {
			t.Fatalf("after engine %d: %+v held, %d bytes in use, %d at most; after the first %+v and %d at most",
				i, card.held, dev.InUse(), dev.Allocated(), first, most)
		}
	}
	// Their code goes too, once enough other programs have come and gone.
	err := dev.Do(func(th *cuda.Thread) error {
		for n := range 8 {
			code, err := th.Load(fmt.Appendf(nil, ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k%d()\n{\n\tret;\n}\n", n))
			if err != nil {
				return err
			}
			if err := th.Unload(code); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || card.held.modules != 8 {
		t.Errorf("%d modules held, want the 8 that were used last (%v)", card.held.modules, err)
	}
}

// TestManyGraphs records more graphs than a program keeps, and starts the first ones
// again after they were dropped.
func TestManyGraphs(t *testing.T) {
	if testing.Short() {
		t.Skip("more graphs than a program keeps; without -short")
	}
	const most, rows = 32, 5
	card := &accounts{Emulator: emulator.New(emulator.Options{Strict: true})}
	s := newSmall(t, 4, rows)
	m := s.build(t, openOn(t, card))
	owners := len(m.Result.Program.Owners())
	ctx, rule := t.Context(), tensor.Rule{Step: 0.5, Pseudocount: 0.1}
	recorded, dropped := 0, 0
	for round := range 2 {
		for lo := range owners {
			for hi := lo + 1; hi <= owners; hi++ { // each range has a graph
				before := card.held.graphs
				if err := m.Engine.ApplyOwners(ctx, rule, lo, hi); err != nil {
					t.Fatalf("round %d, owners %d to %d: %v", round, lo, hi, err)
				}
				switch now := card.held.graphs; {
				case now > most:
					t.Fatalf("%d graphs are kept, want %d at most", now, most)
				case now < before:
					if dropped++; before != most || now != 1 {
						t.Errorf("%d graphs were dropped to keep %d, want %d and 1", before, now, most)
					}
				}
				recorded++
			}
		}
	}
	if want := (recorded - 1) / most; dropped != want || recorded < 3*most {
		t.Errorf("%d graphs were recorded and all dropped %d times; want %d times, and %d graphs or more", recorded, dropped, want, 3*most)
	}
	ll := make([]float64, rows)
	if err := m.Engine.Step(ctx, s.batch, 0, rows, rule, ll); err != nil || !(ll[0] < 0) {
		t.Errorf("a step after that gives %v, %v", ll, err)
	}
	if err := m.Engine.Close(); err != nil || card.held.graphs != 0 {
		t.Errorf("%d graphs are left, %v", card.held.graphs, err)
	}
}

// TestLoadFails lets one allocation after the other fail, and wants a program that
// could not be loaded to leave nothing on the card.
func TestLoadFails(t *testing.T) {
	card := &accounts{Emulator: emulator.New(emulator.Options{Strict: true})}
	dev := openOn(t, card)
	r, err := compile.Compile(reference.Random(rand.New(rand.NewPCG(5, 6)), reference.RandomOptions{Vars: 2}), compile.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	before := card.held
	for fails := 1; ; fails++ {
		card.fails = fails
		p, err := kernels.LoadAs[tensor.Program](t.Context(), dev, layers.Module{Program: r.Program, Rows: 4, Train: true})
		card.fails = 0
		if err == nil {
			p.Free()
			if fails < 30 { // tables and workspace
				t.Errorf("loaded with %d allocations", fails-1)
			}
		} else if !errors.Is(err, errFull) {
			t.Fatalf("allocation %d fails: %v", fails, err)
		}
		if card.held.allocations != before.allocations || dev.InUse() != 0 {
			t.Errorf("allocation %d fails: %+v held, %d bytes in use", fails, card.held, dev.InUse())
		}
		if err == nil {
			return
		}
	}
}

// TestLoadAsks loads a program on cards with as much memory as it needs, and with a byte
// less, beside memory of another. A card that is too small is told at once: nothing is
// allocated, and no kernel compiled.
func TestLoadAsks(t *testing.T) {
	r, err := compile.Compile(reference.Random(rand.New(rand.NewPCG(5, 6)), reference.RandomOptions{Vars: 2}), compile.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	m := layers.Module{Program: r.Program, Rows: 4, Train: true}
	const other = 1000
	// load loads the program beside other bytes on a card, and returns what it has then.
	load := func(memory int64) (inUse int64, took held, err error) {
		card := &accounts{Emulator: emulator.New(emulator.Options{Strict: true, Memory: memory})}
		dev := openOn(t, card)
		if _, err := dev.Alloc(t.Context(), kernels.Uint8, other); err != nil {
			t.Fatal(err)
		}
		before := card.held
		_, err = dev.Load(t.Context(), m)
		took = held{allocations: card.held.allocations - before.allocations, modules: card.held.modules - before.modules}
		return dev.InUse(), took, err
	}
	need, _, err := load(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	if inUse, _, err := load(need); err != nil || inUse != need {
		t.Errorf("on a card of %d bytes: %d in use, %v", need, inUse, err)
	}
	inUse, took, err := load(need - 1)
	if !errors.Is(err, kernels.ErrMemory) || took != (held{}) || inUse != other {
		t.Errorf("on a card of %d bytes: took %+v, %d in use, %v; want nothing but the other's %d, and ErrMemory", need-1, took, inUse, err, other)
	}
}
