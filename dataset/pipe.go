package dataset

import (
	"context"
	"errors"
	"io"
	"os"
	"time"
)

// pipe is a file that may keep its reader waiting, such as a named pipe or what a shell gives for <(...). Reading it ends with the
// context, where the system has deadlines for it.
type pipe struct {
	*os.File
	ctx  context.Context
	stop func() bool
}

// OpenPath opens a file, as os.Open does. One that is not regular may wait for its writer: opening it, and reading what is
// returned, end with ctx. What opens it is then left behind, as the system has no way to end that.
func OpenPath(ctx context.Context, path string) (io.ReadCloser, error) {
	if info, err := os.Stat(path); err != nil || info.Mode().IsRegular() {
		return os.Open(path)
	}
	type outcome struct {
		file *os.File
		err  error
	}
	opened := make(chan outcome)
	go func() {
		f, err := os.Open(path)
		select {
		case opened <- outcome{f, err}:
		case <-ctx.Done():
			f.Close() // harmless without a file
		}
	}()
	select {
	case o := <-opened:
		if o.err != nil {
			return nil, o.err
		}
		stop := context.AfterFunc(ctx, func() { _ = o.file.SetReadDeadline(time.Unix(1, 0)) }) // in the past
		return &pipe{o.file, ctx, stop}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipe) Read(b []byte) (int, error) {
	n, err := p.File.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = p.ctx.Err()
	}
	return n, err
}

func (p *pipe) Close() error {
	p.stop()
	return p.File.Close()
}

// ended is the error of a reader, or that of a context that has ended: a read of a pipe that ended with it looks like damage of the file.
func ended(ctx context.Context, err error) error {
	if why := ctx.Err(); why != nil && err != nil && err != io.EOF {
		return why
	}
	return err
}
