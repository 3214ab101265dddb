package pce

import (
	"slices"

	"github.com/pce-engine/pce/kernels"
)

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
