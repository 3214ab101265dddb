package compile

import (
	"errors"
	"fmt"

	"github.com/pce-engine/pce/layers"
)

// ErrOptions means that a compile option is out of its range.
var ErrOptions = errors.New("compile: bad option")

// Options steer compilation.
type Options struct {
	// MaxGroups is the largest number of partitions of a layer.
	MaxGroups int
	// PaddingTolerance is how many padded edges, as a fraction of the edges, a
	// partition may add before another one is tried.
	PaddingTolerance float64
	// BlockSize forces the units of a block: 1, 2, 4, 8, 16 or 32. 0 chooses.
	BlockSize int
	// Soft is how many rows of evidence tables have, for cells of which a range, a set or
	// likelihoods are known: at least that many different ones in a column for the rows of a
	// launch. 0: none.
	Soft int
}

// DefaultOptions returns the options that fit most circuits.
func DefaultOptions() Options { return Options{MaxGroups: 8, PaddingTolerance: 0.1} }

func (o Options) validate() error {
	if o.MaxGroups < 1 || o.MaxGroups > 512 {
		return fmt.Errorf("%w: max_groups is %d, want 1..512", ErrOptions, o.MaxGroups)
	}
	if !(o.PaddingTolerance >= 0 && o.PaddingTolerance <= 100) {
		return fmt.Errorf("%w: padding_tolerance is %v, want 0..100", ErrOptions, o.PaddingTolerance)
	}
	if o.Soft < 0 || o.Soft > layers.MaxSoft {
		return fmt.Errorf("%w: %d rows of evidence, want 0..%d", ErrOptions, o.Soft, layers.MaxSoft)
	}
	switch o.BlockSize {
	case 0, 1, 2, 4, 8, 16, 32:
		return nil
	}
	return fmt.Errorf("%w: block_size is %d, want 0 (choose), 1, 2, 4, 8, 16 or 32", ErrOptions, o.BlockSize)
}
