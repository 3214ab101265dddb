package run

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/emulator"
)

// place is where a circuit runs.
type place struct {
	kind    placeKind
	ordinal int // of a card
}

type placeKind uint8

const (
	onCPU placeKind = iota
	onCard
	onEmulator
)

// place finds the device that the options name; auto is the first card, or the
// CPU where there is none.
func (o Options) place() (place, error) {
	name, number, numbered := strings.Cut(o.Device, ":")
	ordinal := 0
	if numbered {
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || name != "cuda" {
			name = ""
		}
		ordinal = n
	}
	switch {
	case name == "cpu":
		return place{kind: onCPU}, nil
	case name == "emulator":
		return place{kind: onEmulator}, nil
	case name == "cuda":
		return place{onCard, ordinal}, nil
	case name == "auto" || o.Device == "":
		if cards, err := cuda.Cards(); err == nil && len(cards) > 0 {
			return place{kind: onCard}, nil
		}
		return place{kind: onCPU}, nil
	}
	return place{}, fmt.Errorf("%w: no device %q; use auto, cpu, cuda, cuda:1 or emulator", kernels.ErrDevice, o.Device)
}

// openDevice opens the device that the options name.
func openDevice(o Options) (kernels.Device, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	at, err := o.place()
	if err != nil {
		return nil, err
	}
	switch at.kind {
	case onCard:
		name := "cuda:" + strconv.Itoa(at.ordinal)
		return cuda.Open(name, func() (cuda.Driver, error) { return cuda.OpenDriver(at.ordinal) })
	case onEmulator:
		return cuda.Open("emulator", func() (cuda.Driver, error) {
			return emulator.New(emulator.Options{Threads: o.Threads, Strict: true}), nil
		})
	}
	d, err := o.cpu()
	if err != nil {
		return nil, err
	}
	return cpu.Open(d)
}

// Probe describes the device that the options name, and the kernel paths that
// Options.KernelPath may choose from there, best first: its only one, for a card.
func Probe(o Options) (info kernels.Info, paths []string, err error) {
	dev, err := openDevice(o.withDefaults())
	if err != nil {
		return info, nil, err
	}
	info = dev.Info()
	if err := dev.Close(); err != nil {
		return info, nil, err
	}
	if info.Name == "cpu" {
		return info, slices.Clone(KernelPaths()), nil
	}
	return info, []string{info.KernelPath}, nil
}
