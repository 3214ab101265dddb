package tensor_test

import (
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda"
	executor "github.com/pce-engine/pce/kernels/cuda/tensor"
	"github.com/pce-engine/pce/kernels/emulator"
	"github.com/pce-engine/pce/kernels/kerneltest"
)

var cardDepth = flag.String("depth", "full", "how much of the suite TestConformanceOnCard runs: brief or full")

// emulated opens an emulator that runs graphs alone.
func emulated(o emulator.Options) kerneltest.Open {
	o.Strict = true
	return func(t testing.TB) kernels.Device {
		d, err := executor.Open("emulator", func() (cuda.Driver, error) { return emulator.New(o), nil })
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
}

// asHopper are approximations and sums of matrix instructions as far off as those of a
// card.
var asHopper = emulator.Options{Major: 9, Approx: 7, MMA: emulator.MMA{Group: 16, ExtraBits: 2}}

// conformance names the environment variable that chooses a part of the suite, as
// kerneltest.Suite.Choose takes it. Alone, the tests run what an emulator does in a minute.
const conformance = "PCE_CONFORMANCE"

// TestConformance runs the suite on an emulated card.
func TestConformance(t *testing.T) {
	t.Parallel()
	s := kerneltest.Suite{Open: emulated(asHopper), Depth: kerneltest.Brief, Parallel: true}
	choice := os.Getenv(conformance)
	if choice == "" && testing.Short() {
		choice = kerneltest.Short
	}
	s.Choose(choice).Run(t)
}

// TestSchedules wants the same bits from any order in which warps and blocks of
// threads run, and from any number of processors. Short tests leave out the circuits
// that take the emulator longest.
func TestSchedules(t *testing.T) {
	t.Parallel()
	opens := []kerneltest.Open{
		emulated(emulator.Options{Threads: 1}),
		emulated(emulator.Options{Threads: 2, Seed: 1, Multiprocessors: 1}),
		emulated(emulator.Options{Major: 8, Seed: 2}),
	}
	if testing.Short() {
		first := opens[0]
		opens = []kerneltest.Open{func(t testing.TB) kernels.Device {
			for _, slow := range []string{"hclt", "hmm", "pd", "rat-spn", "mixed", "seed=0", "seed=1", "seed=2", "seed=3", "banded", "far_apart", "opposed"} {
				if strings.Contains(t.Name(), slow) {
					t.Skip("takes the emulator a second; run without -short")
				}
			}
			return first(t)
		}, opens[1]}
	}
	depth := kerneltest.Brief
	if os.Getenv(conformance) == kerneltest.Whole {
		depth = kerneltest.Full
	}
	kerneltest.Same(t, depth, opens...)
}

// TestConformanceOnCard runs the suite on the card that PCE_CARD names, "cuda:0".
func TestConformanceOnCard(t *testing.T) {
	name := os.Getenv("PCE_CARD")
	number, ok := strings.CutPrefix(name, "cuda:")
	if !ok {
		t.Skip("no card named; set PCE_CARD=cuda:0 in a program built with make build-cuda")
	}
	ordinal, err := strconv.Atoi(number)
	if err != nil {
		t.Fatal(err)
	}
	depth, ok := map[string]kerneltest.Depth{"brief": kerneltest.Brief, "full": kerneltest.Full}[*cardDepth]
	if !ok {
		t.Fatalf("-depth %s; want brief or full", *cardDepth)
	}
	fresh := func() (*cuda.Device, error) {
		return executor.Open(name, func() (cuda.Driver, error) { return cuda.OpenDriver(ordinal) })
	}
	// The suite opens the card some four hundred times. One device that stays open
	// keeps the card's context, and the kernels that were compiled, for all others;
	// after a fault that context is lost, and the next part gets another.
	var keeper *cuda.Device
	drop := func() {
		if keeper != nil {
			_ = keeper.Close() // a part has said what is wrong
			keeper = nil
		}
	}
	defer drop()
	open := func(t testing.TB) kernels.Device {
		if keeper != nil {
			if err := keeper.Sync(t.Context()); err != nil {
				t.Logf("an earlier part has lost the context: %v", err)
				drop()
			}
		}
		if keeper == nil {
			d, err := fresh()
			if err != nil {
				t.Fatal(err)
			}
			keeper = d
		}
		d, err := fresh()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if err := open(t).Close(); err != nil { // without a card all ends here
		t.Fatal(err)
	}
	kerneltest.Suite{Open: open, Depth: depth}.Run(t)
	kerneltest.Same(t, depth, open, open)
}
