package simnet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/pce-engine/pce/cluster"
)

// maxBlob is the most bytes of a blob, which lies in memory.
const maxBlob = 1 << 28

// blobs is a host's view of the blobs.
type blobs struct{ host *Host }

func (s blobs) Put(ctx context.Context, digest string, r io.Reader, size int64) error {
	if size < 0 || size > maxBlob {
		return fmt.Errorf("%w: blob %s of %d bytes, at most %d", cluster.ErrCluster, digest, size, maxBlob)
	}
	kept := s.host.net.broker.blobs
	there, err := ask(ctx, s.host, "look for blob "+digest, false, func() (bool, bool) {
		_, ok := kept[digest]
		return ok, true
	})
	if there || err != nil {
		return err
	}
	content := make([]byte, size)
	if _, err := io.ReadFull(r, content); err != nil {
		return fmt.Errorf("%w: blob %s: reading its %d bytes: %w", cluster.ErrCluster, digest, size, err)
	}
	if err := matches(digest, content); err != nil {
		return err
	}
	_, err = ask(ctx, s.host, "put blob "+digest, false, func() (struct{}, bool) {
		kept[digest] = content
		return struct{}{}, true
	})
	return err
}

func (s blobs) Get(ctx context.Context, digest string, w io.Writer) error {
	kept := s.host.net.broker.blobs
	content, err := ask(ctx, s.host, "get blob "+digest, false, func() ([]byte, bool) {
		return kept[digest], true
	})
	if err != nil {
		return err
	}
	if content == nil {
		return fmt.Errorf("%w: blob %s", cluster.ErrNoRecord, digest)
	}
	if err := matches(digest, content); err != nil {
		return err
	}
	_, err = w.Write(content)
	return err
}

func (s blobs) Delete(ctx context.Context, digest string) error {
	kept := s.host.net.broker.blobs
	_, err := ask(ctx, s.host, "delete blob "+digest, false, func() (struct{}, bool) {
		delete(kept, digest)
		return struct{}{}, true
	})
	return err
}

// matches reports contents that do not have their digest.
func matches(digest string, content []byte) error {
	sum := sha256.Sum256(content)
	if got := hex.EncodeToString(sum[:]); got != digest {
		return fmt.Errorf("%w: blob %s has the digest %s; store it again", cluster.ErrCluster, digest, got)
	}
	return nil
}
