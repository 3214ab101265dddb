package cpu

import (
	"fmt"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu/micro"
)

// KernelPaths names the sets of kernels that this machine can run, fastest
// first.
func KernelPaths() []string {
	var names []string
	for _, s := range micro.All() {
		names = append(names, s.Name)
	}
	return names
}

// KernelPath returns the set of that name for Options.Set: the name of the
// fastest gives what no name gives. Where this machine cannot run it the error
// matches kernels.ErrDevice and micro.ErrSet.
func KernelPath(name string) (*micro.Set, error) {
	s, err := micro.ByName(name)
	if err != nil {
		return nil, fmt.Errorf("%w: cpu: %w", kernels.ErrDevice, err)
	}
	return micro.Measured(s), nil
}
