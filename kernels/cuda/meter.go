package cuda

import "github.com/pce-engine/pce/kernels"

// The phases of launches.
const (
	phaseForward  = "forward"
	phaseSample   = "sample"
	phaseBackward = "backward"
	phaseUpdate   = "update" // sums over rows included
)

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

// timed returns how long the card works on what do puts on the stream.
func (d *Device) timed(do func() error) (float64, error) {
	for i := range d.meter.events {
		if d.meter.events[i] != 0 {
			continue
		}
		var err error
		if d.meter.events[i], err = d.drv.NewEvent(); err != nil {
			return 0, err
		}
	}
	from, to := d.meter.events[0], d.meter.events[1]
	if err := d.drv.Record(from, d.launches); err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	if err := d.drv.Record(to, d.launches); err != nil {
		return 0, err
	}
	if err := d.drv.Wait(d.launches); err != nil {
		return 0, err
	}
	return d.drv.Elapsed(from, to)
}

// Measure makes later launches time their phases.
func (d *Device) Measure(on bool) {
	_ = d.do(func() error { // cannot fail
		d.meter.on, d.meter.phases = on, nil
		return nil
	})
}

// Phases returns the time in each phase since Measure.
func (d *Device) Phases() (phases []kernels.Phase) {
	_ = d.do(func() error { // cannot fail
		phases = append(phases, d.meter.phases...)
		return nil
	})
	return phases
}

// Allocated returns the most bytes of the card's memory that were in use.
func (d *Device) Allocated() (bytes int64) {
	_ = d.do(func() error { // cannot fail
		bytes = d.meter.most
		return nil
	})
	return bytes
}

// InUse returns the bytes of the card's memory that buffers and programs have now.
func (d *Device) InUse() (bytes int64) {
	_ = d.do(func() error { // cannot fail
		bytes = d.meter.bytes
		return nil
	})
	return bytes
}

// counter is a driver that counts what its kernels execute.
type counter interface{ Instructions() map[string]int64 }

// Instructions returns how many instructions of each kind have been executed, nil
// on a card.
func (d *Device) Instructions() (counts map[string]int64) {
	_ = d.do(func() error { // cannot fail
		if c, ok := d.drv.(counter); ok {
			counts = c.Instructions()
		}
		return nil
	})
	return counts
}
