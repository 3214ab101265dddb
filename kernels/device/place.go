package device

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/layers"
)

// auto is the name of the first device that the machine has: a card, or the CPU.
const auto = "auto"

// Place is a device of this machine by its name.
type Place struct {
	kind   Kind
	number int
	asked  string // the name
}

// Find returns the place with a name: that of a registered kind, with a number
// behind a colon where there are several, or auto, which "" means too. The device
// need not be there: Open finds out.
func Find(name string) (Place, error) {
	asked := cmp.Or(name, auto)
	kind, number, numbered := strings.Cut(asked, ":")
	for _, k := range registered() {
		p := Place{kind: k, asked: asked}
		switch {
		case asked == auto && k.Present != nil && k.Present():
			return p, nil
		case kind != k.Name || numbered && !k.Numbered:
			continue
		case !numbered:
			return p, nil
		}
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 {
			continue
		}
		p.number = n
		return p, nil
	}
	names := Names()
	last := len(names) - 1
	return Place{}, fmt.Errorf("%w: no device %q; use %s or %s", kernels.ErrDevice, name, strings.Join(names[:last], ", "), names[last])
}

// Host reports whether it is the CPU, whose memory is the host's.
func (p Place) Host() bool { return p.kind.Name == processor.Name }

// Check refuses options that the device cannot be opened with.
func (p Place) Check(o Options) error {
	if o.KernelPath == "" {
		return nil
	}
	if p.kind.Paths == nil {
		return fmt.Errorf("%w: kernel path %q on device %q; it is for the CPU alone, set the device to cpu", kernels.ErrDevice, o.KernelPath, p.asked)
	}
	return p.kind.Check(o)
}

// Open opens the device. Close it.
func (p Place) Open(o Options) (kernels.Device, error) {
	if err := p.Check(o); err != nil {
		return nil, err
	}
	return p.kind.Open(p.number, o)
}

// Plan says what a module takes on the device, with the rows of a launch: of two
// where those of the next one are copied meanwhile. It allocates nothing that grows
// with rows or parameters.
func (p Place) Plan(m layers.Module, o Options) (Memory, error) {
	if err := p.Check(o); err != nil {
		return Memory{}, err
	}
	return p.kind.Plan(m, o)
}

// PlanCode says what code takes on the device, without the rows of a launch, which its caller has.
// It allocates nothing on the device.
func (p Place) PlanCode(m *simt.Module, o Options) (Memory, error) {
	if err := p.Check(o); err != nil {
		return Memory{}, err
	}
	return p.kind.PlanCode(m, o)
}

// Probe opens the device to describe it, and lists the kernel paths that
// Options.KernelPath may choose from there, best first: its only one where there is
// nothing to choose.
func (p Place) Probe(o Options) (info kernels.Info, paths []string, err error) {
	dev, err := p.Open(o)
	if err != nil {
		return info, nil, err
	}
	info = dev.Info()
	if err := dev.Close(); err != nil {
		return info, nil, err
	}
	if p.kind.Paths != nil {
		return info, slices.Clone(p.kind.Paths()), nil
	}
	return info, []string{info.KernelPath}, nil
}
