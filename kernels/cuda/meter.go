package cuda

import "github.com/pce-engine/pce/kernels"

// meter keeps what a benchmark wants to know.
type meter struct {
	on     bool
	phases []kernels.Phase
	events [2]Event
	bytes  int64 // on the card now
	most   int64
}

var (
	_ kernels.Meter = (*Device)(nil)
	_ kernels.Usage = (*Device)(nil)
)

func (m *meter) add(name string, seconds float64) {
	for i := range m.phases {
		if m.phases[i].Name == name {
			m.phases[i].Seconds += seconds
			return
		}
	}
	m.phases = append(m.phases, kernels.Phase{Name: name, Seconds: seconds})
}

// Measured reports whether launches are to be timed.
func (t *Thread) Measured() bool { return t.meter.on }

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
		t.meter.add(phase, seconds)
	}
	return err
}

// Measure makes later launches time their phases.
func (d *Device) Measure(on bool) {
	_ = d.Do(func(t *Thread) error { // fails when the device is closed
		t.meter.on, t.meter.phases = on, nil
		return nil
	})
}

// Phases returns the time in each phase since Measure.
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
