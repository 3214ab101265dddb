package atomicfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// writeDevice writes directly to a device or a pipe. A pipe waits for its reader, and for what that takes: both end with ctx.
func writeDevice(ctx context.Context, path string, fill func(io.Writer) error) error {
	f, err := openDevice(ctx, path)
	if err != nil {
		return err
	}
	defer f.Close()                                                                    // a second Close is harmless
	defer context.AfterFunc(ctx, func() { _ = f.SetWriteDeadline(time.Unix(1, 0)) })() // in the past
	if err := fillFile(f, path, fill); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = fmt.Errorf("atomicfile: write %s: %w", path, ctx.Err())
		}
		return err
	}
	if err := f.Close(); err != nil {
		return failed("close", path, err)
	}
	return nil
}

// openDevice opens a device or a pipe for writing. What opens it is left behind where ctx ends first, as the system has no way to
// end that.
func openDevice(ctx context.Context, path string) (*os.File, error) {
	type outcome struct {
		file *os.File
		err  error
	}
	opened := make(chan outcome)
	go func() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		select {
		case opened <- outcome{f, err}:
		case <-ctx.Done():
			f.Close() // harmless without a file
		}
	}()
	select {
	case o := <-opened:
		if o.err != nil {
			return nil, failed("open", path, o.err)
		}
		return o.file, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("atomicfile: open %s: %w", path, ctx.Err())
	}
}
