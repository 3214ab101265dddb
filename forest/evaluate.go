package forest

import (
	"fmt"
	"math"
	"slices"
)

// What says which results Evaluate gives: predictions, raw scores, leaves or classes.
type What uint8

// Results for a row.
const (
	Prediction What = iota // the link of the raw scores
	Margin                 // the raw scores
	Leaves                 // the number of the leaf in each tree
	Class                  // the class, as an index of Labels
)

// Width returns how many numbers Evaluate gives for a row.
func (f *Forest) Width(what What) int {
	switch what {
	case Margin:
		return f.Outputs
	case Leaves:
		return len(f.Trees)
	case Class:
		return 1
	}
	return f.Link.width(f.Outputs)
}

// Has reports, as an error that matches ErrRequest, why the forest has no such
// results; nil if it has them.
func (f *Forest) Has(what What) error {
	if what > Class {
		return fmt.Errorf("%w: no result has the number %d; ask for predictions, margins, leaves or classes", ErrRequest, what)
	}
	if what == Class && f.Classes == 0 {
		return fmt.Errorf("%w: it gives no classes, its target is %q; ask for predictions", ErrRequest, f.Target)
	}
	if what == Leaves && f.Linear != nil {
		return fmt.Errorf("%w: a linear model has no leaves; ask for predictions", ErrRequest)
	}
	return nil
}

// blockRows is how many rows visit a tree before the next tree is looked at.
const blockRows = 64

// Evaluate computes results for row-major rows of f.Features cells and writes
// f.Width(what) numbers for each into out. The forest must have passed Check. It
// may be called by several goroutines at once.
func Evaluate[T float32 | float64](f *Forest, what What, rows []T, out []float64) error {
	if err := f.Has(what); err != nil {
		return err
	}
	width := f.Width(what)
	if f.Features == 0 {
		return fmt.Errorf("%w: it has no features, so rows cannot be counted", ErrRequest)
	}
	n := len(rows) / f.Features
	if n*f.Features != len(rows) || len(out) != n*width {
		return fmt.Errorf("%w: %d cells and %d results; want %d cells and %d results for each row", ErrRequest, len(rows), len(out), f.Features, width)
	}
	cells := make([]float64, min(n, blockRows)*f.Features)
	sums := make([]float64, min(n, blockRows)*f.Outputs)
	for at := 0; at < n; at += blockRows {
		count := min(blockRows, n-at)
		for i, x := range rows[at*f.Features : (at+count)*f.Features] {
			cells[i] = f.Input.round(float64(x))
		}
		to := out[at*width : (at+count)*width]
		if what == Leaves {
			f.leaves(cells[:count*f.Features], to)
			continue
		}
		f.Start(sums[:count*f.Outputs])
		f.add(cells[:count*f.Features], sums[:count*f.Outputs])
		f.Finish(what, sums[:count*f.Outputs], to)
	}
	return nil
}

func (f *Forest) leaves(cells, out []float64) {
	for t := range f.Trees {
		tree := &f.Trees[t]
		for r, at := 0, 0; at < len(cells); r, at = r+1, at+f.Features {
			out[r*len(f.Trees)+t] = float64(tree.Find(cells[at : at+f.Features]).ID)
		}
	}
}

// Start sets sums, [rows][Outputs], to what the trees are added to, in the precision Sum. With Finish it is
// for evaluators that add up the trees in their own way: of Combine Sum, in the order of
// the trees, rounding each sum to the precision Sum.
func (f *Forest) Start(sums []float64) {
	start := 0.0
	if f.Combine != Sum {
		start = math.NaN() // no value yet
	}
	for i := range sums {
		sums[i] = start
		if f.Combine == Sum && !f.BaseLast {
			sums[i] = f.Sum.round(f.Base[i%f.Outputs])
		}
	}
}

// Finish turns the sums of the trees, which it overwrites, into what was asked for:
// predictions, margins or classes, [rows][Width(what)].
func (f *Forest) Finish(what What, sums, out []float64) {
	f.FinishWith(what, sums, out, nil)
}

// FinishWith is Finish with a function that computes the link Sigmoid of scores, 1/(1+math.Exp(-alpha*score)), to the bit; nil: Finish.
func (f *Forest) FinishWith(what What, sums, out []float64, sigmoid func(scores, out []float64, alpha float64)) {
	if f.Divisor != nil || f.BaseLast || f.Combine != Sum {
		for i := range sums {
			sums[i] = f.shift(sums[i], i%f.Outputs)
		}
	}
	switch what {
	case Margin:
		copy(out, sums)
	case Class:
		for r := range out {
			out[r] = f.class(sums[r*f.Outputs : (r+1)*f.Outputs])
		}
	default:
		if sigmoid != nil && f.Link == Sigmoid {
			sigmoid(sums, out, f.Alpha)
		} else {
			f.Link.apply(sums, out, f.Outputs, f.Alpha)
		}
		if f.Output == Float32 {
			for i, x := range out {
				out[i] = float64(float32(x))
			}
		}
	}
}

// add adds the trees, or the linear model, to the sums of a block of rows.
func (f *Forest) add(cells, sums []float64) {
	if f.Linear != nil {
		f.linear(cells, sums)
	}
	for t := range f.Trees {
		tree := &f.Trees[t]
		for r, at := 0, 0; at < len(cells); r, at = r+1, at+f.Features {
			leaf := tree.Find(cells[at : at+f.Features])
			row := sums[r*f.Outputs : (r+1)*f.Outputs]
			for _, v := range tree.Values[leaf.First:leaf.Last] {
				row[v.Output] = f.combine(row[v.Output], f.Sum.round(tree.Weight*v.Value))
			}
		}
	}
}

// combine combines the sum so far with one more value.
func (f *Forest) combine(sum, x float64) float64 {
	switch {
	case f.Combine == Sum:
		return f.Sum.round(sum + x)
	case math.IsNaN(sum) || f.Combine == Min && x < sum || f.Combine == Max && x > sum:
		return x
	}
	return sum
}

// shift divides the sum of the trees of an output and adds its base where they
// come last.
func (f *Forest) shift(sum float64, output int) float64 {
	if f.Combine != Sum && math.IsNaN(sum) {
		sum = 0
	}
	if f.Divisor != nil {
		sum = f.Sum.round(sum / f.Divisor[output])
	}
	if f.BaseLast || f.Combine != Sum {
		sum = f.Sum.round(sum + f.Base[output])
	}
	return sum
}

// linear adds the bias and the weighted cells in place of trees.
func (f *Forest) linear(cells, sums []float64) {
	l := f.Linear
	for r, at := 0, 0; at < len(cells); r, at = r+1, at+f.Features {
		for o := range f.Outputs {
			sum := f.Sum.round(l.Bias[o] + sums[r*f.Outputs+o])
			for i, x := range cells[at : at+f.Features] {
				if !math.IsNaN(x) {
					sum = f.Sum.round(sum + f.Sum.round(x*l.Weights[i*f.Outputs+o]))
				}
			}
			sums[r*f.Outputs+o] = sum
		}
	}
}

// class returns the class that the scores mean.
func (f *Forest) class(sums []float64) float64 {
	if f.Outputs > 1 {
		return float64(argmax(sums))
	}
	score := sums[0]
	if !f.Link.single() {
		score = f.Output.round(f.Link.one(score, f.Alpha))
	}
	if score > f.Cut {
		return 1
	}
	return 0
}

// Find returns the leaf that a row reaches. NaN is a missing cell. The tree must
// have passed Check and cells must hold all features.
func (t *Tree) Find(cells []float64) *Node {
	n := &t.Nodes[0]
	for n.Test != Leaf {
		if t.Passes(n, cells[n.Feature]) {
			n = &t.Nodes[n.Yes]
		} else {
			n = &t.Nodes[n.No]
		}
	}
	return n
}

// Visit calls visit with the index of each node that a row comes by, from the root to its leaf. What Find wants must hold.
func (t *Tree) Visit(cells []float64, visit func(node int32)) {
	for at := int32(0); ; {
		visit(at)
		n := &t.Nodes[at]
		if n.Test == Leaf {
			return
		}
		if at = n.No; t.Passes(n, cells[n.Feature]) {
			at = n.Yes
		}
	}
}

// Passes reports whether a cell takes the way to n.Yes. NaN is a missing cell; n is an inner node of
// the tree, which must have passed Check.
func (t *Tree) Passes(n *Node, x float64) bool {
	if math.IsNaN(x) || n.ZeroMissing && math.Abs(x) <= ZeroWithin {
		return n.MissingYes
	}
	switch n.Test {
	case Less:
		return x < n.Threshold
	case LessEqual:
		return x <= n.Threshold
	case Greater:
		return x > n.Threshold
	case GreaterEqual:
		return x >= n.Threshold
	case Equal:
		return x == n.Threshold
	case NotEqual:
		return x != n.Threshold
	case In:
		x = math.Floor(x)
	case InTruncated:
		x = math.Trunc(x)
	}
	_, found := slices.BinarySearch(t.Categories[n.First:n.Last], x)
	return found
}
