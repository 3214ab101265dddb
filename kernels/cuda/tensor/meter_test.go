package tensor_test

import (
	"context"
	"testing"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/emulator"
	"github.com/pce-engine/pce/kernels/tensor"
)

// clerk is a card that writes down what its driver is asked for around graphs.
type clerk struct {
	*emulator.Emulator
	calls []string
}

func (c *clerk) Record(e cuda.Event, s cuda.Stream) error {
	c.calls = append(c.calls, "record")
	return c.Emulator.Record(e, s)
}

func (c *clerk) Capture(s cuda.Stream) error {
	c.calls = append(c.calls, "capture")
	return c.Emulator.Capture(s)
}

func (c *clerk) LaunchGraph(g cuda.Graph, s cuda.Stream) error {
	c.calls = append(c.calls, "launch")
	return c.Emulator.LaunchGraph(g, s)
}

// TestMeterClock wants the clock of a phase to start after its graph was recorded,
// which takes the host longer than many a phase takes the card.
func TestMeterClock(t *testing.T) {
	c := &clerk{Emulator: emulator.New(emulator.Options{})}
	dev := openOn(t, c)
	const n = 8
	s := newSmall(t, 3, n)
	m := s.build(t, dev)
	dev.Measure(kernels.MeasurePhases)
	c.calls = nil // Measure has waited for the driver's thread
	if err := m.Engine.Step(context.Background(), s.batch, 0, n, tensor.Rule{Step: 0.5}, make([]float64, n)); err != nil {
		t.Fatal(err)
	}
	launches := 0
	for i, call := range c.calls {
		if call != "launch" {
			continue
		}
		if launches++; i == 0 || c.calls[i-1] != "record" {
			t.Errorf("launch %d does not follow the start of a clock: %v", launches, c.calls)
		}
	}
	if phases := dev.Phases(); launches != 3 || len(phases) != 3 {
		t.Errorf("%d launches and phases %v, want three of each", launches, phases)
	}
}
