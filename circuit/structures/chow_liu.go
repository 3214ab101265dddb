package structures

import (
	"context"
	"fmt"
	"math"
	"runtime"

	"github.com/pce-engine/pce/dataset"
)

// ChowLiuOptions say how mutual information is estimated.
//
// A discrete column of at most Bins categories has one bin per category. Of more
// categories, labelled ones have a bin each for the most frequent and one for
// the rest; the others are numbers and are cut into bins of equal width. Where
// more than half of the rows would be in an eighth of these, side by side, or in one
// of fewer than eight, and rows are not images, and in continuous columns, more than
// Bins values are cut into bins of equally many rows. Only columns that are cut into bins of neighbouring values are
// softened: categories, binary ones above all, are never smeared.
type ChowLiuOptions struct {
	Bins     int     // most bins of a variable, 2 to 254
	Softness float64 // standard deviation of the Gaussian softening, in bins; 0 for none
	MaxRows  int     // rows looked at, a seeded sample of a larger source
	Seed     uint64
	Workers  int // goroutines; they do not change the result
}

// DefaultChowLiu returns the usual settings: 32 bins, half a bin of softening, 20,000 rows, all
// cores, seed 0.
func DefaultChowLiu() ChowLiuOptions {
	return ChowLiuOptions{Bins: 32, Softness: 0.5, MaxRows: 20000, Workers: runtime.GOMAXPROCS(0)}
}

func (o *ChowLiuOptions) check() error {
	switch {
	case o.Bins < 2 || o.Bins > 254:
		return fmt.Errorf("%w: chow-liu with %d bins; choose 2 to 254", ErrOptions, o.Bins)
	case !(o.Softness >= 0 && o.Softness <= float64(o.Bins)):
		return fmt.Errorf("%w: chow-liu with softness %v; choose 0 to %d bins", ErrOptions, o.Softness, o.Bins)
	case o.MaxRows < 1 || o.MaxRows > math.MaxInt32:
		return fmt.Errorf("%w: chow-liu over at most %d rows; choose 1 to %d", ErrOptions, o.MaxRows, math.MaxInt32)
	case o.Workers < 1:
		return fmt.Errorf("%w: chow-liu with %d workers; at least 1 is needed", ErrOptions, o.Workers)
	}
	return nil
}

// ChowLiu learns the tree of largest total mutual information between
// neighbours, rooted at its centre. Equal information goes to the pair of
// smaller variables. The information of a pair counts by the share of rows in which both are
// observed: that of a few rows is large by chance, and says nothing of the others.
func ChowLiu(ctx context.Context, src dataset.Source, opts ChowLiuOptions) (Tree, error) {
	mi, err := mutualInformation(ctx, src, opts, true)
	if err != nil {
		return Tree{}, err
	}
	return NewTree(mi.Vars(), SpanningTree(mi.Vars(), mi.At))
}

// SpanningTree returns the edges of the spanning tree of largest weight over n variables, by
// Prim's algorithm over a strict order of edges, under which it is unique: equal weights go to
// the pair of smaller variables. weight is called once for each pair, with the smaller first.
func SpanningTree(n int, weight func(i, j int) float64) [][2]int {
	type edge struct {
		weight float64
		lo, hi int
	}
	before := func(a, b edge) bool {
		switch {
		case a.weight != b.weight:
			return a.weight > b.weight
		case a.lo != b.lo:
			return a.lo < b.lo
		}
		return a.hi < b.hi
	}
	best := make([]edge, n) // from the tree to each variable outside
	for v := 1; v < n; v++ {
		best[v] = edge{weight(0, v), 0, v}
	}
	outside := make([]int, 0, n)
	for v := 1; v < n; v++ {
		outside = append(outside, v)
	}
	tree := make([][2]int, 0, max(n-1, 0))
	for len(outside) > 0 {
		at := 0
		for i, v := range outside {
			if before(best[v], best[outside[at]]) {
				at = i
			}
		}
		u := outside[at]
		tree = append(tree, [2]int{best[u].lo, best[u].hi})
		outside[at] = outside[len(outside)-1]
		outside = outside[:len(outside)-1]
		for _, v := range outside {
			if e := (edge{weight(min(u, v), max(u, v)), min(u, v), max(u, v)}); before(e, best[v]) {
				best[v] = e
			}
		}
	}
	return tree
}
