package micro

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// ErrSet means that a set of kernels does not exist or cannot run on this machine.
var ErrSet = errors.New("micro: no such kernels")

// Variable names the environment variable that Select reads.
const Variable = "PCE_CPU"

// All returns the sets that this machine can run, fastest first, the portable one last.
func All() []*Set {
	return append(native(), generic)
}

// ByName returns the set of that name, or an error that matches ErrSet where
// this machine cannot run it.
func ByName(name string) (*Set, error) {
	var names []string
	for _, s := range All() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return nil, fmt.Errorf("%w: %q on this machine; use %s", ErrSet, name, strings.Join(names, ", "))
}

// halfUnits was measured: an HCLT of 64 latents is slower with halves, one of 256
// faster.
const halfUnits = 128

// Measured returns a set with halves, where it has them, for wide sums alone.
func Measured(s *Set) *Set {
	m := *s
	if m.Half != nil {
		m.HalfUnits = halfUnits
	}
	return &m
}

// Select returns the fastest set of this machine, Measured, or the one that the
// environment variable PCE_CPU names.
func Select() (*Set, error) {
	name := os.Getenv(Variable)
	if name == "" {
		return Measured(All()[0]), nil
	}
	s, err := ByName(name)
	if err != nil {
		return nil, fmt.Errorf("%w (from %s)", err, Variable)
	}
	return s, nil
}
