package pce

import "github.com/pce-engine/pce/run"

// Structure says what a circuit looks like. Start from DefaultStructure: most
// zero values are refused.
type Structure = run.Structure

// Leaf says which distributions the inputs of a circuit are.
type Leaf = run.Leaf

// HCLT says where the tree of a hidden Chow-Liu tree comes from.
type HCLT = run.HCLT

// DefaultStructure returns a hidden Chow-Liu tree of 64 latents, and usual settings for the
// other structures. With Latents 0 the number of training rows chooses them, as pce train does.
func DefaultStructure() Structure { return run.DefaultStructure() }
