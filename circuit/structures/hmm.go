package structures

import (
	"fmt"
	"reflect"

	"github.com/pce-engine/pce/circuit"
)

// HMMOptions are the settings of a hidden Markov model.
type HMMOptions struct {
	Length  int  // time steps; variable t is the observation of step t
	Latents int  // states
	Tied    bool // homogeneous: all steps share transitions and emissions
	Leaf    Leaf // emission; the same for all steps if Tied
}

// HMM returns a hidden Markov model.
//
// The last step's input is the operand of the transition of the step before it; each
// other step is a product of its input and the transition to the next step.
// Tied nodes refer to the last step, whose nodes come first.
//
// With T = Length it has (2T-1)·M + 1 nodes and (T-1)·M² + (2T-1)·M edges.
func HMM(opts HMMOptions) (*circuit.Graph, error) {
	b, err := newBuilder("hmm", opts.Length, opts.Latents, opts.Leaf, 3*float64(opts.Length))
	if err != nil {
		return nil, err
	}
	emission, transition := circuit.None, circuit.None // tie targets
	state := b.input(opts.Length - 1)
	if opts.Tied {
		emission = state
	}
	for t := opts.Length - 2; t >= 0; t-- {
		next := b.sum(state)
		b.g.Nodes[next].Tie = circuit.TieTo(transition)
		if opts.Tied && transition == circuit.None {
			transition = next
		}
		in := b.input(t)
		b.g.Nodes[in].Tie = circuit.TieTo(emission)
		if opts.Tied && !reflect.DeepEqual(b.g.Nodes[in].Leaf, b.g.Nodes[emission].Leaf) {
			return nil, fmt.Errorf("%w: tied hmm whose leaves of columns %d and %d differ; "+
				"give all steps the same leaf or untie them", ErrOptions, t+1, opts.Length)
		}
		state = b.product(in, next)
	}
	return b.root(state)
}
