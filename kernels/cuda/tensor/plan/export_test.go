package plan

import "github.com/pce-engine/pce/kernels/ptx/tensor"

// SassOfProducts is what an assembler is taken to make of a loop with matrix products.
const SassOfProducts = sassOfProducts

// Resident returns how many blocks of each kernel of a variant a multiprocessor is taken to
// hold, by all that a launch does not choose.
func Resident(v tensor.Variant) map[string]int {
	n := map[string]int{}
	for kernel := range newOccupancy(v) {
		if registersOf(kernel, v) > 0 {
			n[kernel] = newOccupancy(v).grid(Work{Kernel: kernel}, 1, 1).resident
		}
	}
	return n
}

// Seconds is the model's time of a training step's launches on a card with so many
// multiprocessors, whatever the schedule was made for.
func Seconds(s *Schedule, processors int) float64 {
	s.Tables.Processors = processors
	return s.seconds(s.Forward) + s.seconds(s.Backward) + s.seconds(s.Move)
}
