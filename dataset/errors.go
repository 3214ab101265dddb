package dataset

import (
	"errors"
	"fmt"
)

var (
	// ErrFormat means that a file or a cell is not what its column allows. The
	// text says file, line, column and what to do.
	ErrFormat = errors.New("dataset: bad data")
	// ErrSetting means that a path, an option or an argument cannot work.
	ErrSetting = errors.New("dataset: bad setting")
	// ErrNoSource is what Builtin.Open says of a path that it does not know.
	ErrNoSource = errors.New("dataset: no such source")
)

// badData returns an error that matches ErrFormat. where is a file, or a file
// with line and column.
func badData(where, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrFormat, where, fmt.Sprintf(format, args...))
}

func badSetting(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrSetting, fmt.Sprintf(format, args...))
}
