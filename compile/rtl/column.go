package rtl

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/pce-engine/pce/circuit"
)

// Column says how the cells of a variable become codes, which are what a datapath reads.
// Cells between two cuts have the same code.
type Column struct {
	Name string `json:"name,omitempty"` // for reports
	Bits int    `json:"bits"`           // of a code; 0 if every cell has the same code
	// Whole means that cells must be whole numbers.
	Whole bool `json:"whole"`
	// Cuts ascend: interval i holds the numbers from Cuts[i-1] to below Cuts[i].
	Cuts []float64 `json:"cuts"`
	// Codes has the code of each interval, one more than there are cuts; -1 if its numbers
	// have none.
	Codes []int `json:"codes"`
	// Labels are the texts of categories, whose numbers are their places from 0; nil: cells are numbers. They are for reports.
	Labels []string `json:"labels,omitempty"`

	points []float64 // a number for each code
	read   bool      // by a table or a selection
}

// Code returns the code of a cell, or an error that says why it has none.
func (c *Column) Code(x float64) (int, error) {
	if c.Whole && x != math.Trunc(x) || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, fmt.Errorf("%v; want a finite%s number", x, map[bool]string{true: " whole"}[c.Whole])
	}
	i, _ := slices.BinarySearchFunc(c.Cuts, x, func(cut, x float64) int {
		if cut <= x {
			return -1
		}
		return 1
	})
	switch {
	case c.Codes[i] >= 0:
		return c.Codes[i], nil
	case c.Whole:
		last := len(c.Codes) - 2
		for c.Codes[last] < 0 {
			last--
		}
		return 0, fmt.Errorf("%v; want a whole number from 0 to %d", x, last-1)
	}
	return 0, fmt.Errorf("%v lies outside of all bins, from %v to below %v, and their codes fill %d bits; give input-bits, which give codes to all integers",
		x, c.Cuts[0], c.Cuts[len(c.Cuts)-1], c.Bits)
}

// codeBits is the width of codes 0..n-1.
func codeBits(n int) int { return bits.Len(uint(max(n, 1) - 1)) }

// columnsOf makes the columns of a datapath. The faithful ones are integers of one width, whose
// codes are themselves; the others have a code for each class of numbers that no leaf tells apart.
func columnsOf(units []unit, numVars int, o *Options) ([]Column, error) {
	leaves := make([][]*unit, numVars)
	for i := range units {
		if u := &units[i]; u.kind == circuit.Input {
			leaves[u.variable] = append(leaves[u.variable], u)
		}
	}
	width := o.InputBits
	if width == 0 {
		var err error
		if width, err = domainBits(leaves, o.Faithful); err != nil {
			return nil, err
		}
	}
	columns := make([]Column, numVars)
	for v, list := range leaves {
		if len(list) == 0 {
			columns[v] = Column{Codes: []int{0}, points: []float64{0}}
			continue
		}
		columns[v] = cut(list, width)
		if o.Faithful {
			columns[v].numberAll(width, list[0].leaf.Codes())
		} else if err := columns[v].classify(list); err != nil {
			return nil, fmt.Errorf("%w: variable %d: %w", ErrCircuit, v, err)
		}
	}
	return columns, nil
}

// domainBits checks that all domains are finite and returns the width that holds the integers
// of all of them where one width is wanted, else 0.
func domainBits(leaves [][]*unit, oneWidth bool) (int, error) {
	width := 0
	for v, list := range leaves {
		for _, u := range list {
			last, err := lastCut(u)
			if err != nil {
				return 0, fmt.Errorf("%w: variable %d has a %w", ErrCircuit, v, err)
			}
			if !oneWidth {
				continue
			}
			if !(last <= 1<<MaxInputBits) {
				return 0, fmt.Errorf("%w: variable %d has a leaf up to %v; inputs of one width are integers of up to %d bits", ErrCircuit, v, last, MaxInputBits)
			}
			width = max(width, codeBits(int(math.Ceil(last))), 1)
		}
	}
	return width, nil
}

// lastCut is the bound of a leaf's domain, or an error if it has none.
func lastCut(u *unit) (float64, error) {
	if n := u.leaf.Codes(); n > 0 {
		return float64(n), nil
	}
	if h, ok := u.leaf.(circuit.RealHistogram); ok {
		cuts := h.Cuts()
		return cuts[len(cuts)-1], nil
	}
	return 0, fmt.Errorf("%s leaf, whose domain is not finite; give input-bits", u.leaf.Name())
}

// cut returns a column with the cuts of a variable's leaves: at every integer of a width if
// that is not 0, else where the domain or a bin of a leaf begins or ends.
func cut(leaves []*unit, width int) Column {
	codes := leaves[0].leaf.Codes() // all leaves of a variable have the same domain
	c := Column{Whole: codes > 0 || width > 0}
	switch {
	case width > 0:
		for x := range 1<<width + 1 {
			c.Cuts = append(c.Cuts, float64(x))
		}
	case codes > 0:
		for x := range codes + 1 {
			c.Cuts = append(c.Cuts, float64(x))
		}
	default:
		for _, u := range leaves {
			c.Cuts = append(c.Cuts, u.leaf.(circuit.RealHistogram).Cuts()...)
		}
		slices.Sort(c.Cuts)
		c.Cuts = slices.Compact(c.Cuts)
	}
	return c
}

// numberAll gives every integer of a width itself as its code, but none to integers that leaves
// of a finite domain, of that many codes, refuse. 0 means a domain that is not finite.
func (c *Column) numberAll(width, finite int) {
	c.Bits = width
	c.Codes = make([]int, len(c.Cuts)+1)
	for i := range c.Codes {
		c.Codes[i] = -1
		if x := i - 1; i > 0 && i < len(c.Cuts) && (finite == 0 || x < finite) {
			c.Codes[i] = x
			c.points = append(c.points, float64(x))
		}
	}
}

// classify gives intervals on which all leaves are the same the same code. Numbers outside of
// the bins of histograms have a code if an interval within has the same densities, or if codes of
// the same width have room for it.
func (c *Column) classify(leaves []*unit) error {
	finite := leaves[0].leaf.Codes()
	domain := len(c.Cuts) - 1 // intervals 1 to domain have codes
	if finite > 0 {
		domain = min(domain, finite)
	}
	first := 1
	if !c.Whole {
		first = 0 // interval 0 speaks for all numbers outside: there every leaf has its floor
	}
	type key struct {
		class int
		bits  uint64
	}
	class := make([]int, domain+1)
	for _, u := range leaves {
		known := map[key]int{}
		for i := first; i <= domain; i++ {
			k := key{class[i], math.Float64bits(u.at(c.point(i)))}
			if _, ok := known[k]; !ok {
				known[k] = len(known)
			}
			class[i] = known[k]
		}
	}
	c.Codes = make([]int, len(c.Cuts)+1)
	for i := range c.Codes {
		c.Codes[i] = -1
	}
	code := map[int]int{}
	for i := 1; i <= domain; i++ {
		k, ok := code[class[i]]
		if !ok {
			k = len(code)
			code[class[i]] = k
			c.points = append(c.points, c.point(i))
		}
		c.Codes[i] = k
	}
	c.Bits = codeBits(len(c.points))
	if c.Bits > MaxInputBits {
		return fmt.Errorf("%d codes; a column has at most %d bits", len(c.points), MaxInputBits)
	}
	if c.Whole {
		return nil
	}
	k, ok := code[class[0]]
	if !ok && len(c.points) < 1<<c.Bits {
		k, ok = len(c.points), true
		c.points = append(c.points, c.point(0))
	}
	if ok {
		c.Codes[0], c.Codes[len(c.Cuts)] = k, k
	}
	return nil
}

// point is a number of interval i.
func (c *Column) point(i int) float64 {
	if i == 0 {
		return math.Inf(-1)
	}
	return c.Cuts[i-1]
}
