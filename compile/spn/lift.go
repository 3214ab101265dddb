package spn

import (
	"math"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/kernels/simt"
)

// lift multiplies tables by powers of 2, so that linear space has the numbers above 1 too: likelihoods are at most about 1, and those
// below the least normal number take many times as long and are computed again. All leaves of a variable have the same power.
// Children of a sum have the same variables and those of a product different ones, so an operation is lifted by the powers of its
// variables, and roots by all of them, which their logarithms leave out. Nothing is rounded. Variables with Gaussian leaves stay.
func (c *code) lift(t simt.Type) {
	var there, stays []bool
	for i := range c.ops {
		o := &c.ops[i]
		if !o.used || o.kind != circuit.Input {
			continue
		}
		for o.variable >= len(there) {
			there, stays = append(there, false), append(stays, false)
		}
		there[o.variable] = true
		stays[o.variable] = stays[o.variable] || o.gaussian
	}
	n := 0
	for v := range there {
		if there[v] = there[v] && !stays[v]; there[v] {
			n++
		}
	}
	if n == 0 {
		return
	}
	// What some variables have together is multiplied by at most the power of all.
	c.lifted = max(0, int(math.Floor(maxLinear(t)-c.largest)))
	powers := make([]int, len(there)) // about the same for each
	at := 0
	for v := range there {
		if there[v] {
			powers[v] = c.lifted*(at+1)/n - c.lifted*at/n
			at++
		}
	}
	for i := range c.ops {
		if o := &c.ops[i]; o.used && o.kind == circuit.Input {
			o.lift = powers[o.variable]
		}
	}
	c.ranges()
}

// lower undoes lift.
func (c *code) lower() {
	if c.lifted == 0 {
		return
	}
	c.lifted = 0
	for i := range c.ops {
		c.ops[i].lift = 0
	}
	c.ranges()
}
