package cuda

import (
	"fmt"

	"github.com/pce-engine/pce/kernels"
)

// meter keeps what a benchmark wants to know.
type meter struct {
	detail kernels.Detail
	phases []kernels.Phase
	clocks []Event         // of marks, and the one after the last
	marks  []kernels.Phase // the kernels of a direct launch, in order; no kernel: between phases
	events [2]Event
	bytes  int64 // on the card now
	most   int64
}

var (
	_ kernels.Meter = (*Device)(nil)
	_ kernels.Usage = (*Device)(nil)
)

// add counts a launch of a kernel, or of all kernels of a phase, which have no name.
func (m *meter) add(phase, kernel string, seconds float64) {
	for i := range m.phases {
		if p := &m.phases[i]; p.Name == phase && p.Kernel == kernel {
			p.Launches++
			p.Seconds += seconds
			return
		}
	}
	m.phases = append(m.phases, kernels.Phase{Name: phase, Kernel: kernel, Launches: 1, Seconds: seconds})
}

// Measured says how closely launches are to be timed.
func (t *Thread) Measured() kernels.Detail { return t.meter.detail }

// Mark says that the launch of a kernel of a phase follows, or with empty names that a
// phase has ended. It matters within Direct alone.
func (t *Thread) Mark(phase, kernel string) error {
	if t.meter.detail != kernels.MeasureKernels {
		return nil
	}
	i := len(t.meter.marks)
	if i == len(t.meter.clocks) {
		e, err := t.drv.NewEvent()
		if err != nil {
			return err
		}
		t.meter.clocks = append(t.meter.clocks, e)
	}
	t.meter.marks = append(t.meter.marks, kernels.Phase{Name: phase, Kernel: kernel})
	return t.drv.Record(t.meter.clocks[i], t.launches)
}

// count adds the times between marks, which have all happened.
func (m *meter) count(drv Driver) error {
	for i, mark := range m.marks {
		if mark.Kernel == "" {
			continue
		}
		if i+1 == len(m.marks) {
			return fmt.Errorf("BUG: no mark after kernel %s", mark.Kernel)
		}
		seconds, err := drv.Elapsed(m.clocks[i], m.clocks[i+1])
		if err != nil {
			return err
		}
		m.add(mark.Name, mark.Kernel, seconds)
	}
	return nil
}

// Time adds how long the card works on what do starts to a phase, and waits for it.
func (t *Thread) Time(phase string, do func() error) error {
	for i := range t.meter.events {
		if t.meter.events[i] != 0 {
			continue
		}
		var err error
		if t.meter.events[i], err = t.drv.NewEvent(); err != nil {
			return err
		}
	}
	from, to := t.meter.events[0], t.meter.events[1]
	if err := t.drv.Record(from, t.launches); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	if err := t.drv.Record(to, t.launches); err != nil {
		return err
	}
	if err := t.drv.Wait(t.launches); err != nil {
		return err
	}
	seconds, err := t.drv.Elapsed(from, to)
	if err == nil {
		t.meter.add(phase, "", seconds)
	}
	return err
}

// Measure makes later launches time their phases or kernels.
func (d *Device) Measure(detail kernels.Detail) {
	_ = d.Do(func(t *Thread) error { // fails when the device is closed
		t.meter.detail, t.meter.phases = detail, nil
		return nil
	})
}

// Phases returns the time in each phase, or of each kernel of it, since Measure.
func (d *Device) Phases() (phases []kernels.Phase) {
	_ = d.Do(func(t *Thread) error { // fails when the device is closed
		phases = append(phases, t.meter.phases...)
		return nil
	})
	return phases
}

// Allocated returns the most bytes of the card's memory that were in use.
func (d *Device) Allocated() (bytes int64) {
	_ = d.Do(func(t *Thread) error { // fails when the device is closed
		bytes = t.meter.most
		return nil
	})
	return bytes
}

// InUse returns the bytes of the card's memory that buffers and programs have now.
func (d *Device) InUse() (bytes int64) {
	_ = d.Do(func(t *Thread) error { // fails when the device is closed
		bytes = t.meter.bytes
		return nil
	})
	return bytes
}

// counter is a driver that counts what its kernels execute.
type counter interface{ Instructions() map[string]int64 }

// Instructions returns how many instructions of each kind have been executed, nil
// on a card.
func (d *Device) Instructions() (counts map[string]int64) {
	_ = d.Do(func(t *Thread) error { // fails when the device is closed
		if c, ok := t.drv.(counter); ok {
			counts = c.Instructions()
		}
		return nil
	})
	return counts
}
