package device

import (
	"strconv"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/cuda/scalar"
	"github.com/pce-engine/pce/kernels/cuda/tensor"
	"github.com/pce-engine/pce/kernels/cuda/tensor/plan"
	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/layers"
)

// card is an NVIDIA GPU.
var card = Kind{
	Name:     "cuda",
	Numbered: true,
	Present: func() bool {
		cards, err := cuda.Cards()
		return err == nil && len(cards) > 0
	},
	Open: func(number int, _ Options) (kernels.Device, error) {
		return cuda.Open("cuda:"+strconv.Itoa(number), func() (cuda.Driver, error) { return cuda.OpenDriver(number) }, cardLoaders)
	},
	Plan:     planCard,
	PlanCode: planCardCode,
}

// cardLoaders are what cards make programs with.
var cardLoaders = cuda.Loaders{layers.ModuleKind: tensor.Load, simt.Kind: scalar.Load}

// Driven is the kind of a device that is driven as a card is, but is none: the
// emulator, with what a test puts around it.
func Driven(name string, driver func(o Options) (cuda.Driver, error)) Kind {
	return Kind{
		Name: name,
		Open: func(_ int, o Options) (kernels.Device, error) {
			return cuda.Open(name, func() (cuda.Driver, error) { return driver(o) }, cardLoaders)
		},
		Plan:     planCard,
		PlanCode: planCardCode,
	}
}

// planCard counts the rows of two launches: those of the next one are copied while
// the card works.
func planCard(m layers.Module, _ Options) (Memory, error) {
	work, err := plan.MemoryOf(m)
	return Memory{Values: work.Values + 2*m.RowBytes(), Flows: work.Flows, Scratch: work.Scratch, Program: work.Program}, err
}

// planCardCode counts tables and scratch memory on the card, and what the host makes of the module.
func planCardCode(m *simt.Module, _ Options) (Memory, error) {
	const perValue = 300 // of instruction, register and text
	work, err := scalar.Bytes(m)
	return Memory{Scratch: work, Program: perValue * int64(len(m.Types))}, err
}
