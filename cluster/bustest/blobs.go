package bustest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/pce-engine/pce/cluster"
)

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func contents(n int, seed uint64) []byte {
	b := make([]byte, n)
	r := rand.NewPCG(seed, 0)
	for i := range b {
		b[i] = byte(r.Uint64() >> 56)
	}
	return b
}

// unread fails when it is read.
type unread struct{}

func (unread) Read([]byte) (int, error) { return 0, errors.New("read again") }

func blobs(t *testing.T, b Bench) {
	ctx := b.limited(t)
	x, y := b.Open(t).Blobs(), b.Open(t).Blobs()
	for i, n := range []int{0, 1, 100, 1<<20 - 1024, 1 << 20, 5_000_000} {
		want := contents(n, uint64(i)+1)
		d := digest(want)
		var got bytes.Buffer
		matches(t, "get of nothing", y.Get(ctx, d, &got), cluster.ErrNoRecord)
		fatal(t, "put", x.Put(ctx, d, bytes.NewReader(want), int64(n)))
		fatal(t, "put of what is there", y.Put(ctx, d, unread{}, int64(n)))
		got.Reset()
		fatal(t, "get", y.Get(ctx, d, &got))
		if !bytes.Equal(got.Bytes(), want) {
			t.Fatalf("%d bytes came back as %d others", n, got.Len())
		}
		fatal(t, "delete", y.Delete(ctx, d))
		fatal(t, "second delete", x.Delete(ctx, d))
		matches(t, "get of what was deleted", x.Get(ctx, d, io.Discard), cluster.ErrNoRecord)
	}
}

// broken ends with an error.
type broken struct {
	r   io.Reader
	err error
}

func (b broken) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if err == io.EOF {
		err = b.err
	}
	return n, err
}

func blobErrors(t *testing.T, b Bench) {
	ctx := b.limited(t)
	x := b.Open(t).Blobs()
	want := contents(3_000_000, 99)
	d := digest(want)
	nothing := func(what string) {
		t.Helper()
		matches(t, "get after "+what, x.Get(ctx, d, io.Discard), cluster.ErrNoRecord)
	}
	size := int64(len(want))

	lost := errors.New("lost")
	matches(t, "broken contents", x.Put(ctx, d, broken{bytes.NewReader(want[:size/2]), lost}, size), lost)
	nothing("a broken put")
	oneLine(t, "short contents", x.Put(ctx, d, bytes.NewReader(want[:size-1]), size))
	nothing("a short put")
	wrong := bytes.Clone(want)
	wrong[size/2] ^= 1
	oneLine(t, "wrong contents", x.Put(ctx, d, bytes.NewReader(wrong), size))
	nothing("a wrong put")
	oneLine(t, "negative size", x.Put(ctx, d, bytes.NewReader(nil), -1))

	put, stop := context.WithCancel(ctx)
	pulled, wait := io.Pipe()
	go func() {
		_, _ = wait.Write(want[:size-10])
		stop()
		_ = wait.CloseWithError(context.Canceled)
	}()
	oneLine(t, "interrupted put", x.Put(put, d, pulled, size))
	nothing("an interrupted put")

	fatal(t, "put", x.Put(ctx, d, bytes.NewReader(want), size))
	matches(t, "get into a full disk", x.Get(ctx, d, full{}), errFull)
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			var got bytes.Buffer
			if err := x.Get(ctx, d, &got); err != nil || !bytes.Equal(got.Bytes(), want) {
				t.Errorf("get: %d bytes, %v", got.Len(), err)
			}
		})
	}
	both.Wait()
	fatal(t, "delete", x.Delete(ctx, d))
}

var errFull = errors.New("no space left")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
