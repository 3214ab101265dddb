package codec

import (
	"errors"
	"fmt"
)

var (
	// ErrFile means that a compressed file is damaged, cut short, or not one.
	ErrFile = errors.New("codec: bad compressed file")
	// ErrModel means that a file was compressed with another model, or that a model
	// cannot compress: a column is continuous, or its parameters are unusable.
	ErrModel = errors.New("codec: unsuitable model")
	// ErrRows means that a file has no row of the model.
	ErrRows = errors.New("codec: no rows of the model")
)

func badFile(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFile, fmt.Sprintf(format, args...))
}

func badModel(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrModel, fmt.Sprintf(format, args...))
}

func badRows(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRows, fmt.Sprintf(format, args...))
}
