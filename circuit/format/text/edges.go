package text

import (
	"math"
	"strings"

	"github.com/pce-engine/pce/circuit"
)

// edges reads the edge blocks of a sum and their mask, after the word that announces them: the
// size of a block, such as 2x2, pairs of row and column, and the mask if there is one. More
// blocks than the sum has places for are refused before they are stored.
func (p *parser) edges(n *circuit.Node, columns int) error {
	size := p.take()
	rowText, colText, ok := strings.Cut(size.text, "x")
	if !ok {
		return p.fail(size.at, "%v where a block size like 2x2 should be", size)
	}
	rows, err := p.toInteger(size.at, rowText, "the rows of an edge block", 1, n.Units)
	if err != nil {
		return err
	}
	cols, err := p.toInteger(size.at, colText, "the columns of an edge block", 1, columns)
	if err != nil {
		return err
	}
	e := &circuit.Edges{Rows: rows, Cols: cols}
	n.Edges = e
	most := n.Units * columns / (rows * cols)
	for p.next.kind == '(' || len(e.Pairs) == 0 {
		if len(e.Pairs) == most {
			return p.fail(p.next.at, "more than the %d edge blocks of %d × %d weights", most, n.Units, columns)
		}
		pair, err := p.pair()
		if err != nil {
			return err
		}
		e.Pairs = append(e.Pairs, pair)
	}
	if p.word("mask") {
		return p.mask(e)
	}
	return nil
}

func (p *parser) pair() (pair [2]int32, err error) {
	if err := p.expect('('); err != nil {
		return pair, err
	}
	for i, end := range []byte{',', ')'} {
		v, err := p.integer("the number of a block", 0, math.MaxInt32)
		if err != nil {
			return pair, err
		}
		if err := p.expect(end); err != nil {
			return pair, err
		}
		pair[i] = int32(v)
	}
	return pair, nil
}

// mask reads words of 0 and 1, one bit for each weight of the edge blocks.
func (p *parser) mask(e *circuit.Edges) error {
	want, bits := len(e.Pairs)*e.Rows*e.Cols, 0
	for p.next.kind == 'w' && !keywords[p.next.text] {
		t := p.take()
		for i, c := range []byte(t.text) {
			if c != '0' && c != '1' || bits == want {
				return p.fail(t.at+i, "%v where at most %d mask bits 0 or 1 should be", t, want)
			}
			if bits&63 == 0 {
				e.Mask = append(e.Mask, 0)
			}
			e.Mask[bits>>6] |= uint64(c-'0') << (bits & 63)
			bits++
		}
	}
	if bits != want {
		return p.fail(p.next.at, "%d mask bits, want one for each of %d weights", bits, want)
	}
	return nil
}
