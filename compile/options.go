package compile

import (
	"errors"
	"fmt"
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
	switch o.BlockSize {
	case 0, 1, 2, 4, 8, 16, 32:
		return nil
	}
	return fmt.Errorf("%w: block_size is %d, want 0 (choose), 1, 2, 4, 8, 16 or 32", ErrOptions, o.BlockSize)
}
