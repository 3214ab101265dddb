package spflow

import (
	"github.com/pce-engine/pce/circuit"
)

// families read what comes after the variable of a leaf, up to its closing parenthesis and
// what an older text has behind that.
var families map[string]func(p *parser, n *node) error

func init() {
	families = map[string]func(p *parser, n *node) error{
		"Histogram":   (*parser).histogram,
		"Hist":        (*parser).hist,
		"Categorical": (*parser).categorical,
		"Bernoulli":   (*parser).bernoulli,
		"Gaussian":    (*parser).gaussian,
		"LogNormal":   (*parser).logNormal,
		"Poisson":     (*parser).poisson,
	}
}

// leaf reads a leaf whose family was taken.
func (p *parser) leaf(n *node, family token) error {
	read, ok := families[family.text]
	if !ok {
		return p.fail(family.at, "%v where a kind of node should be: SumNode, ProductNode, Histogram, Categorical, Bernoulli, Gaussian, LogNormal or Poisson", family)
	}
	if _, err := p.expect('('); err != nil {
		return err
	}
	at := p.next.at
	if n.variable = p.until("|)\n"); n.variable == "" {
		return p.fail(at, "no variable; a leaf is over one")
	}
	if _, err := p.expect('|'); err != nil {
		return err
	}
	if err := read(p, n); err != nil {
		return err
	}
	if err := n.leaf.CheckSettings(); err != nil {
		return p.fail(family.at, "%w", err)
	}
	if err := n.leaf.CheckParams(n.params); err != nil {
		return p.fail(family.at, "%w", err)
	}
	return nil
}

func (p *parser) histogram(n *node) error {
	at := p.next.at
	var lists [][]float64
	for {
		list, err := p.list()
		if err != nil {
			return err
		}
		lists = append(lists, list)
		if p.next.kind != ';' || len(lists) == 3 {
			break
		}
		p.take()
	}
	if len(lists) == 1 {
		return p.fail(p.next.at, "%v where the densities should be", p.next)
	}
	if len(lists) == 3 && len(lists[2]) != len(lists[1]) {
		return p.fail(at, "%d points for %d bins; give each bin one", len(lists[2]), len(lists[1]))
	}
	if _, err := p.expect(')'); err != nil {
		return err
	}
	return p.bins(n, at, lists[0], lists[1])
}

// hist reads the histogram of an early version: probabilities that it does not need, then the
// lists behind the parenthesis.
func (p *parser) hist(n *node) error {
	p.until(")\n")
	if _, err := p.expect(')'); err != nil {
		return err
	}
	at := p.next.at
	breaks, err := p.list()
	if err != nil {
		return err
	}
	densities, err := p.list()
	if err != nil {
		return err
	}
	return p.bins(n, at, breaks, densities)
}

func (p *parser) bins(n *node, at int, breaks, densities []float64) error {
	if len(breaks) != len(densities)+1 {
		return p.fail(at, "%d breaks and %d densities; want one break more", len(breaks), len(densities))
	}
	n.leaf, n.params = circuit.RealHistogram{Breaks: breaks, Floor: Floor}, densities
	return nil
}

// setting reads key = and leaves the value.
func (p *parser) setting(key string) error {
	if t := p.take(); t.kind != 'w' || t.text != key {
		return p.fail(t.at, "%v where %q should be", t, key+"=")
	}
	_, err := p.expect('=')
	return err
}

func (p *parser) categorical(n *node) error {
	if err := p.setting("p"); err != nil {
		return err
	}
	list, err := p.list()
	if err != nil {
		return err
	}
	n.leaf, n.params = circuit.Categorical{Categories: len(list)}, list
	_, err = p.expect(')')
	return err
}

// settings reads numbers by their keys, with semicolons between, and the parenthesis.
func (p *parser) settings(n *node, l circuit.Leaf, keys ...string) error {
	for i, key := range keys {
		if i > 0 {
			if _, err := p.expect(';'); err != nil {
				return err
			}
		}
		if err := p.setting(key); err != nil {
			return err
		}
		x, err := p.number()
		if err != nil {
			return err
		}
		n.params = append(n.params, x)
	}
	n.leaf = l
	_, err := p.expect(')')
	return err
}

func (p *parser) bernoulli(n *node) error {
	err := p.settings(n, circuit.Bernoulli{}, "p")
	if err == nil {
		n.params = []float64{1 - n.params[0], n.params[0]}
	}
	return err
}

func (p *parser) gaussian(n *node) error { return p.settings(n, circuit.Gaussian{}, "mean", "stdev") }

func (p *parser) logNormal(n *node) error {
	return p.settings(n, circuit.LogNormal{}, "mean", "stdev")
}

func (p *parser) poisson(n *node) error { return p.settings(n, circuit.Poisson{}, "mean") }
