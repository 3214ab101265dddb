package main

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
)

// stdinReader is standard input whose reads end with the context, also one that waits for a terminal or a pipe: it reads in a goroutine
// of its own, from the first call on.
type stdinReader struct {
	ctx  context.Context
	from io.Reader

	begin sync.Once
	r     *io.PipeReader
	cut   atomic.Bool // the context ended before the input did
}

func (s *stdinReader) Read(p []byte) (int, error) {
	s.begin.Do(s.start)
	n, err := s.r.Read(p)
	if err != nil && err == s.ctx.Err() {
		s.cut.Store(true)
	}
	return n, err
}

func (s *stdinReader) start() {
	var w *io.PipeWriter
	s.r, w = io.Pipe()
	context.AfterFunc(s.ctx, func() { w.CloseWithError(s.ctx.Err()) })
	go func() {
		_, err := io.Copy(w, s.from)
		w.CloseWithError(err) // nil is the end
	}()
}

// close gives up what was not read.
func (s *stdinReader) close() {
	s.begin.Do(func() { s.r, _ = io.Pipe() })
	s.r.Close()
}
