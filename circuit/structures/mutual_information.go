package structures

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pce-engine/pce/dataset"
)

// maxPairVars bounds the table of mutual information to 1 GB.
const maxPairVars = 1 << 14

// Information holds the mutual information, in nats, of all pairs of variables.
type Information struct {
	vars  int
	pairs []float64 // (i, j) with i < j at j·(j-1)/2 + i
}

func newInformation(vars int) *Information {
	return &Information{vars, make([]float64, vars*(vars-1)/2)}
}

// Vars returns the number of variables, those of the schema.
func (m *Information) Vars() int { return m.vars }

// At returns the information of variables i and j; 0 if they are the same.
func (m *Information) At(i, j int) float64 {
	if i == j {
		return 0
	}
	return *m.pair(i, j)
}

func (m *Information) pair(i, j int) *float64 {
	i, j = min(i, j), max(i, j)
	return &m.pairs[j*(j-1)/2+i]
}

// MutualInformation estimates the mutual information between all pairs of columns
// of src from the rows in which both are observed.
//
// The joint counts of a pair are taken over the rows in which one variable is
// not in its most common bin; the rest follows from the other variable's own
// counts. Time is at most pairs × rows, and far less for sparse columns.
func MutualInformation(ctx context.Context, src dataset.Source, opts ChowLiuOptions) (*Information, error) {
	return mutualInformation(ctx, src, opts, false)
}

// mutualInformation is MutualInformation, per row of the sample if shared is set: what a pair tells of the rows in which both are
// observed is then spread over all rows.
func mutualInformation(ctx context.Context, src dataset.Source, opts ChowLiuOptions, shared bool) (*Information, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	src, err := dataset.Checked(src)
	if err != nil {
		return nil, fmt.Errorf("%w: chow-liu: %w", ErrData, err)
	}
	n := len(src.Schema().Columns)
	if n < 1 || n > maxPairVars || src.Rows() < 1 {
		return nil, fmt.Errorf("%w: chow-liu over %d columns and %d rows; 1 to %d columns and at least 1 row are needed",
			ErrData, n, src.Rows(), maxPairVars)
	}
	sample, err := sampleBinned(ctx, src, opts)
	if err != nil {
		return nil, err
	}
	stride := opts.Bins + 1
	var vars []*sparse // sparsest first; a constant tells nothing about others
	for v := range sample {
		if s := newSparse(v, &sample[v], stride); s != nil {
			vars = append(vars, s)
		}
	}
	slices.SortStableFunc(vars, func(a, b *sparse) int { return cmp.Compare(len(a.rows), len(b.rows)) })
	mi := newInformation(n)
	taps := gaussian(opts.Softness, opts.Bins)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(opts.Workers, n) {
		wg.Go(func() {
			p := newPairCounter(opts.Bins, taps)
			for i := int(next.Add(1)) - 1; i < len(vars) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				for rest := vars[i+1:]; len(rest) > 0; rest = rest[min(group, len(rest)):] {
					p.count(vars[i], rest)
					for k, b := range rest[:min(group, len(rest))] {
						nats := p.information(vars[i], b, k)
						if shared {
							nats *= p.share(vars[i], b, k)
						}
						*mi.pair(vars[i].id, b.id) = nats
					}
				}
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("structures: mutual information of %d columns: %w", n, err)
	}
	return mi, nil
}

// sparse is a binned variable with the list of its uncommon rows.
type sparse struct {
	*binned
	id     int
	common int      // the most common bin
	rows   []int32  // the rows in other bins
	first  []uint16 // bin·stride of each of these rows
}

// newSparse lists the rows in which a variable is not in its most common bin: pairs of sparse
// variables are counted by these rows alone. It returns nil for a variable that is constant
// where it is observed, whose mutual information with any other is 0.
func newSparse(id int, v *binned, stride int) *sparse {
	s := &sparse{binned: v, id: id}
	used := 0
	for bin, c := range v.count {
		if c > v.count[s.common] {
			s.common = bin
		}
		if c > 0 && bin != v.missing() {
			used++
		}
	}
	if used < 2 {
		return nil
	}
	for r, bin := range v.bin {
		if int(bin) != s.common {
			s.rows = append(s.rows, int32(r))
			s.first = append(s.first, uint16(int(bin)*stride))
		}
	}
	return s
}
