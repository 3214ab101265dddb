package em

import (
	"errors"
	"fmt"
)

var (
	// ErrOptions means that options cannot work.
	ErrOptions = errors.New("em: bad options")
	// ErrCheckpoint means that no checkpoint of a directory can be used.
	ErrCheckpoint = errors.New("em: unusable checkpoint")
	// ErrChanged means that a run is not what it was when its checkpoint was
	// written. Options.AllowChanges accepts that.
	ErrChanged = errors.New("em: the run has changed")
	// ErrStopped means that a run ended because its context did, after it wrote
	// a checkpoint if it keeps any.
	ErrStopped = errors.New("em: stopped")
	// ErrNumber means that training produced a log-likelihood that is not a number.
	ErrNumber = errors.New("em: log-likelihood is not a number")
)

func badOption(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrOptions, fmt.Sprintf(format, args...))
}
