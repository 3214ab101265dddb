package fold

import (
	"slices"

	"github.com/pce-engine/pce/kernels/simt"
)

// Registers are elements of a lane, with copies that take values in turn: a loop has then several chains of additions
// that do not wait for each other. A loop of the language carries State.
type Registers struct {
	op     *Operator
	b      *simt.Builder
	copies [][][]simt.Value // [copy][element][number], the next one first
	used   int              // copies that have had their value since Turn
}

// NewRegisters returns a number of copies of a number of elements, all initial.
func NewRegisters(b *simt.Builder, op *Operator, copies, elements int) *Registers {
	r := &Registers{op: op, b: b}
	for range copies {
		c := make([][]simt.Value, elements)
		for k := range c {
			c[k] = op.Initial(b)
		}
		r.copies = append(r.copies, c)
	}
	return r
}

// Reduce combines a value into an element of the present copy.
func (r *Registers) Reduce(element int, value ...simt.Value) {
	c := r.copies[r.used%len(r.copies)]
	c[element] = r.op.Combine(r.b, c[element], value)
}

// Next makes the next copy the present one.
func (r *Registers) Next() { r.used++ }

// Turn puts the next copy first, so that the next turn of a loop begins with it whatever this one took.
func (r *Registers) Turn() {
	at := r.used % len(r.copies)
	r.copies, r.used = append(slices.Clone(r.copies[at:]), r.copies[:at]...), 0
}

// State returns all numbers, for a loop to carry.
func (r *Registers) State() (list []simt.Value) {
	for _, c := range r.copies {
		for _, e := range c {
			list = append(list, e...)
		}
	}
	return list
}

// Restore sets all numbers, in the order of State.
func (r *Registers) Restore(list []simt.Value) {
	for i := range r.copies {
		elements := make([][]simt.Value, len(r.copies[i]))
		for k := range elements {
			elements[k], list = slices.Clone(list[:len(r.op.Types)]), list[len(r.op.Types):]
		}
		r.copies[i] = elements
	}
}

// Total combines the copies in pairs and returns the elements.
func (r *Registers) Total() [][]simt.Value {
	list := r.copies
	for len(list) > 1 {
		var half [][][]simt.Value
		for i := 0; i+1 < len(list); i += 2 {
			both := make([][]simt.Value, len(list[i]))
			for k := range both {
				both[k] = r.op.Combine(r.b, list[i][k], list[i+1][k])
			}
			half = append(half, both)
		}
		if len(list)%2 != 0 {
			half = append(half, list[len(list)-1])
		}
		list = half
	}
	return list[0]
}
