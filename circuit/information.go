package circuit

import (
	"fmt"
	"math"
)

// Information is what a distribution says of itself and of another one, in nats.
type Information struct {
	Entropy      float64 // -E_p[log p]
	CrossEntropy float64 // -E_p[log q]
	KL           float64 // E_p[log p - log q]
}

// DeterministicInformation returns the information of the root under the parameters p, in
// relation to the same circuit with the parameters q, in one pass from the leaves up. The graph
// must be valid, smooth, decomposable and deterministic, as Properties says; weights are
// normalised. CrossEntropy and KL are infinite where q excludes what p allows. An error
// matches ErrLeaf where a leaf's entropy is not known.
//
// A sum whose children have disjoint supports draws an edge and then a row of it, so its
// entropy is Σ θ·(-log θ + H(child)); a product's is the sum of its children's. So it is for
// the other two, as a row of p takes the same edges under q.
func DeterministicInformation(g *Graph, p, q ParamFunc) (Information, error) {
	units, used := make([][]Information, len(g.Nodes)), Reachable(g)
	var theta, phi []float32
	for i := range g.Nodes {
		if !used[i] { // its parameters may be left open, as other queries do not ask for them
			continue
		}
		id := NodeID(i)
		n := &g.Nodes[i]
		units[i] = make([]Information, n.Units)
		if n.Kind == Product {
			for u := range n.Units {
				for _, c := range n.Children {
					units[i][u].add(1, units[c][u])
				}
			}
			continue
		}
		owner := g.Owner(id)
		size := g.NumParams(id)
		theta, phi = grown(theta, size), grown(phi, size)
		if size > 0 {
			if err := p(owner, theta); err != nil {
				return Information{}, err
			}
			if err := q(owner, phi); err != nil {
				return Information{}, err
			}
		}
		var err error
		if n.Kind == Input {
			err = leafUnits(n, theta, phi, units[i])
		} else {
			sumUnits(g, id, theta, phi, units)
		}
		if err != nil {
			return Information{}, err
		}
	}
	return units[g.Root][0], nil
}

func grown(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n)
	}
	return s[:n]
}

// add adds a share of another distribution's information.
func (x *Information) add(share float64, y Information) {
	x.Entropy += share * y.Entropy
	x.CrossEntropy += share * y.CrossEntropy
	x.KL += share * y.KL
}

// choice returns the information of a choice that has the probability p, and q under the other
// distribution.
func choice(p, q float64) Information {
	lp, lq := Log(p), Log(q)
	return Information{-lp, -lq, lp - lq}
}

// leafUnits writes the information of the units of an input.
func leafUnits(n *Node, theta, phi []float32, out []Information) error {
	k := n.Leaf.NumParams()
	p, q := make([]float64, k), make([]float64, k)
	for u := range n.Units {
		for i := range k {
			p[i], q[i] = float64(theta[u*k+i]), float64(phi[u*k+i])
		}
		var err error
		if out[u], err = leafInformation(n.Leaf, p, q); err != nil {
			return err
		}
	}
	return nil
}

// leafInformation returns entropy, cross-entropy and divergence, in nats, of one unit of a leaf
// with parameters p under parameters q: a closed form, or else a sum over its codes. A family
// that has neither is an error that matches ErrLeaf.
func leafInformation(l Leaf, p, q []float64) (x Information, err error) {
	normal := func() Information {
		d, ratio := (p[0]-q[0])/q[1], p[1]/q[1]
		h := 0.5 + 0.5*math.Log(2*math.Pi) + Log(p[1])
		kl := -Log(ratio) + (ratio*ratio+d*d-1)/2
		return Information{h, h + kl, kl}
	}
	switch l := l.(type) {
	case Gaussian:
		return normal(), nil
	case LogNormal: // the number is the exponential of a normal one, which has the mean p[0]
		x = normal()
		x.Entropy += p[0]
		x.CrossEntropy += p[0]
		return x, nil
	case Poisson:
		kl := deviance(p[0], q[0]) // the terms of p·log(p/q) + q - p are up to 10^12 and cancel
		h := l.entropy(p)
		return Information{h, h + kl, kl}, nil
	case RealHistogram: // draws are those of the normalised bins, densities those of LogProb
		for i, share := range l.Masses(p) {
			if at := l.Breaks[i] + l.width(i)/2; share > 0 {
				lp, lq := l.LogProb(p, at), l.LogProb(q, at)
				x.add(share, Information{-lp, -lq, lp - lq})
			}
		}
		return x, nil
	}
	if l.Codes() == 0 {
		return x, fmt.Errorf("%w: the entropy of %s leaves is not known", ErrLeaf, l.Name())
	}
	for c := range l.Codes() {
		lp := l.LogProb(p, float64(c))
		if share := math.Exp(lp); share > 0 {
			lq := l.LogProb(q, float64(c))
			x.add(share, Information{-lp, -lq, lp - lq})
		}
	}
	return x, nil
}

// entropy adds up the counts from the likeliest one on to both sides, until their
// probabilities are below 1e-20 of its. These counts grow with the root of the rate, to 10^7;
// of large rates, four terms of the series in 1/rate are as exact.
func (l Poisson) entropy(p []float64) float64 {
	const (
		least = 46 // natural logs
		large = 1e4
	)
	if r := p[0]; r >= large {
		return 0.5*math.Log(2*math.Pi*math.E*r) - (1+(1+19/(15*r))/(2*r))/(12*r)
	}
	at := l.Mode(p)
	top, sum := l.LogProb(p, at), 0.0
	for k := at; k >= 0; k-- {
		lp := l.LogProb(p, k)
		if lp < top-least {
			break
		}
		sum -= lp * math.Exp(lp)
	}
	for k := at + 1; ; k++ {
		lp := l.LogProb(p, k)
		if lp < top-least {
			return sum
		}
		sum -= lp * math.Exp(lp)
	}
}

// sumUnits writes the information of the units of a sum, whose children have theirs.
func sumUnits(g *Graph, id NodeID, theta, phi []float32, units [][]Information) {
	n := &g.Nodes[id]
	var below []Information // of each column
	for _, c := range n.Children {
		below = append(below, units[c]...)
	}
	// Weights that are float32 add up to 1 within their rounding.
	totals, others := make([]float64, n.Units), make([]float64, n.Units)
	g.EachWeight(id, func(unit, _, param int) {
		totals[unit] += float64(theta[param])
		others[unit] += float64(phi[param])
	})
	g.EachWeight(id, func(unit, column, param int) {
		if theta[param] > 0 {
			share := float64(theta[param]) / totals[unit]
			units[id][unit].add(share, choice(share, float64(phi[param])/others[unit]))
			units[id][unit].add(share, below[column])
		}
	})
}

// EachWeight calls do with the weights of a sum that exist, for each its unit, its column
// among the units of all children, and its place in the canonical order of parameters.
func (g *Graph) EachWeight(id NodeID, do func(unit, column, param int)) {
	n := &g.Nodes[id]
	if n.Edges == nil {
		columns := g.Columns(id)
		for u := range n.Units {
			for c := range columns {
				do(u, c, u*columns+c)
			}
		}
		return
	}
	e := n.Edges
	for k, pair := range e.Pairs {
		for r := range e.Rows {
			for c := range e.Cols {
				if param := (k*e.Rows+r)*e.Cols + c; e.Has(param) {
					do(int(pair[0])*e.Rows+r, int(pair[1])*e.Cols+c, param)
				}
			}
		}
	}
}
