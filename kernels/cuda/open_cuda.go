//go:build cuda && cgo

package cuda

import (
	"errors"
	"fmt"

	"gorgonia.org/cu"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda/driver"
)

// Cards lists the cards of the machine. With an empty list comes an error that says
// why there are none.
func Cards() ([]Card, error) {
	n, err := count()
	if err != nil {
		return nil, err
	}
	cards := make([]Card, n)
	for i := range cards {
		if _, cards[i], err = describe(i); err != nil {
			return nil, err
		}
	}
	return cards, nil
}

// count returns the number of cards, which is not 0.
func count() (int, error) {
	if problem := driver.Problem(); problem != "" {
		return 0, fmt.Errorf("%w: no CUDA driver: %s; install NVIDIA's driver, or compute on the CPU", kernels.ErrDevice, problem)
	}
	n, err := cu.NumDevices()
	if err != nil {
		return 0, failure(err, "cuDeviceGetCount()")
	}
	if n == 0 {
		return 0, fmt.Errorf("%w: the CUDA driver sees no card; does CUDA_VISIBLE_DEVICES hide it?", kernels.ErrDevice)
	}
	return n, nil
}

// describe asks the driver about a card.
func describe(ordinal int) (cu.Device, Card, error) {
	card := Card{Ordinal: ordinal}
	device, err := cu.GetDevice(ordinal)
	if err != nil {
		return device, card, failure(err, "cuDeviceGet(%d)", ordinal)
	}
	if card.Name, err = device.Name(); err != nil {
		return device, card, failure(err, "cuDeviceGetName(device %d)", ordinal)
	}
	if card.Memory, err = device.TotalMem(); err != nil {
		return device, card, failure(err, "cuDeviceTotalMem(device %d)", ordinal)
	}
	for _, a := range []struct {
		attribute cu.DeviceAttribute
		to        *int
	}{
		{cu.ComputeCapabilityMajor, &card.Major},
		{cu.ComputeCapabilityMinor, &card.Minor},
		{cu.MultiprocessorCount, &card.Multiprocessors},
		{driver.OptInShared, &card.SharedMemory},
		{cu.ClockRate, &card.Clock},
	} {
		if *a.to, err = device.Attribute(a.attribute); err != nil {
			return device, card, failure(err, "cuDeviceGetAttribute(attribute %d, device %d)", a.attribute, ordinal)
		}
	}
	if card.DriverVersion = cu.Version(); card.DriverVersion < 0 {
		return device, card, fmt.Errorf("%w: cuDriverGetVersion() fails", kernels.ErrDevice)
	}
	return device, card, nil
}

// OpenDriver makes a driver of a card, counted from 0, and its primary context the
// current one of the calling thread. A context is current in a thread of the system,
// so the goroutine that opens a driver locks its thread first, with
// runtime.LockOSThread, and makes its calls from there; another enters it first.
func OpenDriver(ordinal int) (Driver, error) {
	n, err := count()
	if err != nil {
		return nil, err
	}
	if ordinal < 0 || ordinal >= n {
		return nil, fmt.Errorf("%w: no card cuda:%d; there are %d, counted from 0", kernels.ErrDevice, ordinal, n)
	}
	device, card, err := describe(ordinal)
	if err != nil {
		return nil, err
	}
	handle, err := device.RetainPrimaryCtx()
	if err != nil {
		return nil, failure(err, "cuDevicePrimaryCtxRetain(device %d)", ordinal)
	}
	d := &native{device: device, card: card, handle: handle}
	if err := d.Enter(); err != nil {
		return nil, errors.Join(err, releaseContext(device, ordinal))
	}
	d.memory, d.host, d.modules, d.graphs = map[Ptr]int64{}, map[*byte]int{}, map[Module]*sharedModule{}, map[Graph]driver.Graph{}
	d.context = primaryOf(ordinal)
	return d, nil
}

func releaseContext(device cu.Device, ordinal int) error {
	return failure(device.ReleasePrimaryCtx(), "cuDevicePrimaryCtxRelease(device %d)", ordinal)
}

// codeHints say what to do about a code.
var codeHints = map[driver.Code]string{
	driver.OutOfMemory:       "take fewer rows at a time, or end other programs on the card",
	driver.NoDevice:          "does CUDA_VISIBLE_DEVICES hide the card?",
	driver.DeviceUnavailable: "another program has the card for itself",
	driver.NoBinary:          "the code is for another card",
	driver.NoCompiler:        "libnvidia-ptxjitcompiler.so.1 is missing; install the whole driver",
	driver.UnsupportedPTX:    "the driver is older than the kernels; update it",
	driver.MissingSymbol:     "the driver is too old for this call; update it",
	driver.TooManyResources:  "the kernel needs more registers or shared memory than the card has for a block",
	driver.SystemNotReady:    "is nvidia-fabricmanager running?",
	driver.DriverMismatch:    "library and kernel module of the driver differ; restart the machine",
}

// failure makes an error of what a call returned, nil if that is nil. The text of
// the call with its arguments is made when it is needed.
func failure(err error, call string, args ...any) error {
	if err == nil {
		return nil
	}
	kind, hint := kernels.ErrDevice, ""
	text := err.Error()
	if code, ok := driver.CodeOf(err); ok {
		if code == driver.OutOfMemory {
			kind = kernels.ErrMemory
		}
		if h, known := codeHints[code]; known {
			hint = "; " + h
		} else if code.Lost() {
			hint = "; the card refuses all work of this process from now on: start it again"
		}
		if !errors.Is(err, code) { // the text of gorgonia.org/cu has neither name nor number
			text = code.Error()
		}
	}
	return fmt.Errorf("%w: %s: %s%s", kind, fmt.Sprintf(call, args...), text, hint)
}
