package dataset

import (
	"context"
	"fmt"
	"io"

	"github.com/pce-engine/pce/dataset/ndarray"
)

// arrayRecords are the rows of a .npy or an idx file.
type arrayRecords struct {
	path string
	file io.Closer
	r    *ndarray.Reader
	row  []float64
}

func openNPY(ctx context.Context, path string, opts *Options) (Records, error) {
	return openArray(ctx, path, opts, ndarray.OpenNPY)
}

func openIDX(ctx context.Context, path string, opts *Options) (Records, error) {
	return openArray(ctx, path, opts, ndarray.OpenIDX)
}

func openArray(ctx context.Context, path string, opts *Options, open func(io.Reader) (*ndarray.Reader, error)) (Records, error) {
	f, err := openFile(ctx, path, opts)
	if err != nil {
		return nil, err
	}
	r, err := open(f)
	if err != nil {
		f.Close()
		return nil, badData(path, "%v", err)
	}
	return &arrayRecords{path: path, file: f, r: r, row: make([]float64, r.Columns())}, nil
}

func (a *arrayRecords) Names() []string { return nil }

func (a *arrayRecords) Columns() int { return a.r.Columns() }

// Image returns the shape of rows that are images: bytes [N, H, W] or
// [N, H, W, C] with 1 or 3 channels.
func (a *arrayRecords) Image() [3]int {
	s := a.r.Shape
	switch {
	case a.r.DType.Size != 1:
	case len(s) == 3:
		return [3]int{s[1], s[2], 1}
	case len(s) == 4 && (s[3] == 1 || s[3] == 3):
		return [3]int{s[1], s[2], s[3]}
	}
	return [3]int{}
}

func (a *arrayRecords) Next(row []Value) error {
	if _, err := a.nextNumbers(); err != nil {
		return err
	}
	return a.values(row)
}

// nextNumbers returns the cells of the next row, until the next call.
func (a *arrayRecords) nextNumbers() ([]float64, error) {
	err := a.r.Next(a.row)
	if err != nil && err != io.EOF {
		err = badData(a.path, "%v", err)
	}
	return a.row, err
}

// values writes the row that was read last as Next does.
func (a *arrayRecords) values(row []Value) error {
	for i, x := range a.row {
		switch bits, ok := a.r.Integer(i); {
		case x != x:
			row[i] = Value{}
		case ok && a.r.DType.Kind == 'i':
			row[i] = Integer(int64(bits))
		case ok:
			row[i] = Integer(bits)
		default:
			row[i] = Value{Kind: Number, Number: x}
		}
	}
	return nil
}

// Where counts rows as lines, since an array has none.
func (a *arrayRecords) Where(col int) string {
	if a.r.Row() == 0 {
		return a.path
	}
	return fmt.Sprintf("%s:%d:%d", a.path, a.r.Row(), col+1)
}

func (a *arrayRecords) Close() error { return a.file.Close() }
