package lanes

import (
	"maps"
	"slices"
	"unsafe"

	"github.com/pce-engine/pce/kernels/ptx"
)

//go:generate go -C ../../../internal/gen run ./lanes ../../kernels/emulator/lanes

// Set is what computes operations straight from the registers of a warp: assembly
// for the vectors of this machine. The set "generic" has no routines, and its callers
// compute with the functions of this package, which define what a routine does.
type Set struct {
	Name     string // "avx512", "avx2" or "generic"
	run      func(code *Inst, file unsafe.Pointer, mask uint32)
	multiply func(p *Product, kind, group, extra int) bool
	memory   *memory // nil: there is none
	routines map[string]*Routine
	stop     uintptr
}

// Routine is an operation of a set. Form has a letter for the class of the
// destination and of each operand: r for 32 bits a lane, d for 64, p for a predicate.
type Routine struct {
	Name string
	Form string
	code uintptr
}

// routine is what the generator says of one.
type routine struct{ name, form string }

// Inst is an operation on registers: where a file holds the destination and the
// operands.
type Inst struct {
	code uintptr
	At   [4]uint32
}

// FileStart is where the registers of a file begin; a set uses the bytes before it.
// Files and the registers of 32 and 64 bits in them are aligned to 64 bytes.
const FileStart = 128

// generic has no routines.
var generic = &Set{Name: "generic"}

// Sets returns the sets that this machine can run, fastest first, generic last.
func Sets() []*Set { return append(slices.Clone(native()), generic) }

// Find returns the routine of an operation by the name that the language gives it
// with a type, "fma.rn.f32". Integers whose sign does not count have those of bits,
// "add.b32". It returns nil if the set has none.
func (s *Set) Find(name string, t ptx.Type) *Routine {
	if r, ok := s.routines[name+"."+t.String()]; ok {
		return r
	}
	if IsInteger(t) || t == ptx.B32 || t == ptx.B64 {
		switch t.Bytes() {
		case 4:
			return s.routines[name+".b32"]
		case 8:
			return s.routines[name+".b64"]
		}
	}
	return nil
}

// Inst makes an operation of a routine.
func (r *Routine) Inst(at [4]uint32) Inst { return Inst{r.code, at} }

// Stop makes the operation that ends a list.
func (s *Set) Stop() Inst { return Inst{code: s.stop} }

// Run does the operations from one up to the one that stops, in the lanes of a mask.
func (s *Set) Run(code *Inst, file unsafe.Pointer, mask uint32) { s.run(code, file, mask) }

// newSet makes a set of what the assembly says of itself.
func newSet(name string, codes []uintptr, stop uintptr, run func(*Inst, unsafe.Pointer, uint32), list []routine) *Set {
	s := &Set{Name: name, run: run, stop: stop, routines: map[string]*Routine{}}
	for i, r := range list {
		if codes[i] != 0 {
			s.routines[r.name] = &Routine{r.name, r.form, codes[i]}
		}
	}
	return s
}

// Names lists the routines of the set.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.routines)) }
