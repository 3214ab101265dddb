package device

import (
	"slices"
	"strings"
	"sync"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/layers"
)

// Options say how a device computes.
type Options struct {
	Threads int // of the CPU; 0: one a core. Results do not depend on it
	// KernelPath is one of the kind's Paths; "" is the kind's own choice.
	KernelPath string
}

// Kind is a kind of device.
type Kind struct {
	Name     string // of the device, or of the first one
	Numbered bool   // there may be several, counted from 0: cuda, cuda:1
	// Present reports whether the machine has one, for auto; nil: auto does not take
	// one.
	Present func() bool
	// Open opens a device; number is 0 unless the kind is numbered.
	Open func(number int, o Options) (kernels.Device, error)
	// Plan says what a module takes, before anything is allocated.
	Plan func(m layers.Module, o Options) (Memory, error)
	// PlanCode is Plan for code, without the rows of a launch.
	PlanCode func(m *simt.Module, o Options) (Memory, error)
	// Paths lists what Options.KernelPath may be on this machine, best first, and Check
	// refuses others; nil: nothing can be chosen.
	Paths func() []string
	Check func(o Options) error
}

// Memory is what a module takes on a device in addition to its parameters, in bytes.
type Memory struct {
	Values  int64 // of vectors, and the cells of the rows that are on the device at a time
	Flows   int64
	Scratch int64
	Program int64 // what the device makes of the program
	Threads int   // of the host that run a launch of code each, on rows of their own; 0: the device has memory of its own
}

var kinds = struct {
	sync.Mutex // guards list
	list       []Kind
}{list: []Kind{card, processor}} // auto takes the first that is present

// Register adds a kind of device. Of two kinds with one name the later replaces the
// earlier.
func Register(k Kind) {
	kinds.Lock()
	defer kinds.Unlock()
	if i := slices.IndexFunc(kinds.list, func(have Kind) bool { return have.Name == k.Name }); i >= 0 {
		kinds.list[i] = k
		return
	}
	kinds.list = append(kinds.list, k)
}

func registered() []Kind {
	kinds.Lock()
	defer kinds.Unlock()
	return slices.Clone(kinds.list)
}

// Names lists the names that Find takes, for people; of a numbered kind the first
// two.
func Names() []string {
	list := registered()
	slices.SortFunc(list, func(a, b Kind) int { return strings.Compare(a.Name, b.Name) })
	names := []string{auto}
	for _, k := range list {
		names = append(names, k.Name)
		if k.Numbered {
			names = append(names, k.Name+":1")
		}
	}
	return names
}
