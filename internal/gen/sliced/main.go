// Command sliced writes the assembly of kernels/cpu/sliced: one file for each routine
// and one with the Go declarations.
//
// Run it as "go generate ./kernels/cpu/sliced" in the root of the repository; it first
// deletes what it wrote before.
package main

import (
	"github.com/mmcloughlin/avo/build"

	"github.com/pce-engine/pce/internal/gen/routines"
)

// routine is one assembly function.
type routine struct {
	name string // Go name
	sig  string // Go signature, with rowSet, which avo does not know
	doc  string // what it computes, for the declaration
	emit func(a *asm)
}

func main() {
	p := routines.Package{Name: "sliced", Generator: "sliced", Known: map[string]string{"*rowSet": "*byte"}}
	for _, r := range all() {
		emit := func(c *build.Context) { r.emit(&asm{Context: c}) }
		p.Routines = append(p.Routines, routines.Routine{Name: r.name, Doc: r.doc, Signature: r.sig, Emit: emit})
	}
	p.Main()
}

// all lists the routines. Those whose names end in 256 need AVX2, in 512 AVX-512, and
// in VBMI its byte permutations and affine transformations of bits as well.
func all() []routine {
	list := []routine{fetch, keys, quads, search, nibbles, ends, indices, add32, add64, quadsWide, searchWide, nibblesWide, nibblesVBMI, endsWide, indicesVBMI, walk, ranks, sigmoidWide}
	for h := range maxHeight {
		list = append(list, mux(h+1), descend(h+1), muxWide(h+1))
	}
	for h := 6; h <= maxHeight; h++ {
		list = append(list, addVBMI(h))
	}
	return list
}
