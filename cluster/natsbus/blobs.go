package natsbus

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"sync"

	"crypto/sha256"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/pce-engine/pce/cluster"
)

const (
	crcHeader   = "Pce-Crc32c"
	maxChunk    = 1<<20 - headerBytes
	headerBytes = 1 << 10 // left for headers in a message
	putWindow   = 32 << 20
	getWindow   = 16 << 20
)

var chunkTable = crc32.MakeTable(crc32.Castagnoli)

// blobs is a cluster.Blobs.
type blobs struct{ bus *Bus }

// manifest says that a blob is complete, and how it is cut.
type manifest struct {
	Size  int64 `json:"size"`
	Chunk int64 `json:"chunk"` // bytes of all chunks but the last
}

// Blobs keeps large contents until they are deleted.
func (b *Bus) Blobs() cluster.Blobs { return &blobs{b} }

func checkDigest(digest string) error {
	raw, err := hex.DecodeString(digest)
	if err != nil || len(raw) != sha256.Size || hex.EncodeToString(raw) != digest {
		return fmt.Errorf("%w: blob %.80q: the name must be a SHA-256 in lower-case hexadecimal", cluster.ErrCluster, digest)
	}
	return nil
}

func (s *blobs) manifest(ctx context.Context, digest string) (manifest, error) {
	stored, err := s.bus.get(ctx, blobsStream, query{Last: blobPrefix + digest})
	if err != nil {
		return manifest{}, err
	}
	if stored.vacant() {
		return manifest{}, cluster.ErrNoRecord
	}
	var m manifest
	err = json.Unmarshal(stored.Data, &m)
	if err != nil || m.Size < 0 || m.Chunk <= 0 || m.Chunk > maxChunk {
		return manifest{}, fmt.Errorf("%w: the manifest is damaged: delete the blob", cluster.ErrCluster)
	}
	return m, nil
}

func (s *blobs) Put(ctx context.Context, digest string, r io.Reader, size int64) error {
	if err := checkDigest(digest); err != nil {
		return err
	}
	if err := s.put(ctx, digest, r, size); err != nil {
		return fmt.Errorf("blob %.12s: %w", digest, err)
	}
	return nil
}

func (s *blobs) put(ctx context.Context, digest string, r io.Reader, size int64) error {
	if size < 0 {
		return fmt.Errorf("%w: %d bytes", cluster.ErrCluster, size)
	}
	have, err := s.manifest(ctx, digest)
	if err == nil && have.Size != size {
		return fmt.Errorf("%w: it has %d bytes, not %d", cluster.ErrCluster, have.Size, size)
	}
	if err == nil || !isNoRecord(err) {
		return err
	}
	m := manifest{Size: size, Chunk: min(maxChunk, int64(s.bus.MaxPayload())-headerBytes)}
	if m.Chunk <= 0 {
		return fmt.Errorf("%w: the broker takes messages of %d bytes: too few", cluster.ErrCluster, s.bus.MaxPayload())
	}
	sum, err := s.putChunks(ctx, digest, r, m)
	if err != nil {
		return err
	}
	if sum != digest {
		return fmt.Errorf("%w: the contents have the digest %.12s", cluster.ErrCluster, sum)
	}
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	msg := &nats.Msg{Subject: blobPrefix + digest, Data: data, Header: nats.Header{idHeader: {nuid.Next()}}}
	_, _, err = s.bus.publish(ctx, msg, quick)
	return err
}

// putChunks stores the chunks, several at a time, and returns the digest of the
// whole when all are confirmed.
func (s *blobs) putChunks(ctx context.Context, digest string, r io.Reader, m manifest) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var unconfirmed sync.WaitGroup
	defer unconfirmed.Wait()
	defer cancel(errors.New("given up"))
	window := make(chan struct{}, max(1, putWindow/m.Chunk))
	sum := sha256.New()
	for i := int64(0); i*m.Chunk < m.Size; i++ {
		select {
		case window <- struct{}{}:
		case <-ctx.Done():
			return "", s.ended(ctx)
		}
		chunk := make([]byte, min(m.Chunk, m.Size-i*m.Chunk))
		if n, err := io.ReadFull(r, chunk); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return "", fmt.Errorf("%w: the contents end after %d bytes of %d", cluster.ErrCluster, i*m.Chunk+int64(n), m.Size)
			}
			return "", err
		}
		sum.Write(chunk)
		msg := &nats.Msg{Subject: chunkSubject(digest, m.Chunk, i), Data: chunk, Header: nats.Header{crcHeader: {checksum(chunk)}}}
		unconfirmed.Go(func() {
			defer func() { <-window }()
			if _, _, err := s.bus.publish(ctx, msg, upload); err != nil {
				cancel(err)
			}
		})
	}
	unconfirmed.Wait()
	if ctx.Err() != nil {
		return "", s.ended(ctx)
	}
	var extra [1]byte
	if n, err := io.ReadFull(r, extra[:]); n != 0 {
		return "", fmt.Errorf("%w: the contents have more than %d bytes", cluster.ErrCluster, m.Size)
	} else if err != io.EOF {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// ended says why the context of a transfer ended: by a chunk that failed, or
// from outside.
func (s *blobs) ended(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, cluster.ErrCluster) || !errors.Is(cause, ctx.Err()) {
		return cause
	}
	return s.bus.unreachable(nil, cause)
}

func checksum(chunk []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(chunk, chunkTable))
}

func (s *blobs) Get(ctx context.Context, digest string, w io.Writer) error {
	if err := checkDigest(digest); err != nil {
		return err
	}
	m, err := s.manifest(ctx, digest)
	if err == nil {
		err = s.getChunks(ctx, digest, m, w)
	}
	if err != nil {
		return fmt.Errorf("blob %.12s: %w", digest, err)
	}
	return nil
}

// getChunks asks for several chunks at a time and writes them in order.
func (s *blobs) getChunks(ctx context.Context, digest string, m manifest, w io.Writer) error {
	type answer struct {
		chunk []byte
		err   error
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	chunks := (m.Size + m.Chunk - 1) / m.Chunk
	window := min(chunks, max(1, getWindow/m.Chunk))
	answers := make([]chan answer, window)
	ask := func(i int64) {
		if i >= chunks {
			return
		}
		come := make(chan answer, 1)
		answers[i%window] = come
		running.Go(func() {
			chunk, err := s.getChunk(ctx, digest, m, i)
			come <- answer{chunk, err}
		})
	}
	for i := range window {
		ask(i)
	}
	sum := sha256.New()
	for i := range chunks {
		a := <-answers[i%window]
		if a.err != nil {
			return a.err
		}
		ask(i + window)
		sum.Write(a.chunk)
		if _, err := w.Write(a.chunk); err != nil {
			return err
		}
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != digest {
		return fmt.Errorf("%w: the contents have the digest %.12s: delete the blob and put it again", cluster.ErrCluster, got)
	}
	return nil
}

// getChunk asks any server that has the stream: chunks do not change. One may
// not have it yet.
func (s *blobs) getChunk(ctx context.Context, digest string, m manifest, i int64) ([]byte, error) {
	subject := chunkSubject(digest, m.Chunk, i)
	for try := 0; ; try++ {
		msg := &nats.Msg{Subject: apiPrefix + "DIRECT.GET." + blobsStream + "." + subject}
		resp, _, err := s.bus.call(ctx, msg, download)
		if err != nil {
			return nil, err
		}
		if status := resp.Header.Get("Status"); status != "" {
			if try < 5 && pause(ctx, try) == nil {
				continue
			}
			if _, err := s.manifest(ctx, digest); err != nil { // deleted meanwhile
				return nil, err
			}
			return nil, fmt.Errorf("%w: chunk %d is missing (status %s): delete the blob and put it again", cluster.ErrCluster, i, status)
		}
		want := min(m.Chunk, m.Size-i*m.Chunk)
		crc, err := strconv.ParseUint(resp.Header.Get(crcHeader), 16, 32)
		if err != nil || int64(len(resp.Data)) != want || uint32(crc) != crc32.Checksum(resp.Data, chunkTable) {
			return nil, fmt.Errorf("%w: chunk %d is damaged: delete the blob and put it again", cluster.ErrCluster, i)
		}
		return resp.Data, nil
	}
}

func (s *blobs) Delete(ctx context.Context, digest string) error {
	if err := checkDigest(digest); err != nil {
		return err
	}
	// The manifest goes first: without it no reader asks for the chunks.
	for _, subject := range []string{blobPrefix + digest, blobPrefix + digest + ".>"} {
		request := map[string]string{"filter": subject}
		if _, err := s.bus.ask(ctx, "STREAM.PURGE."+blobsStream, request, nil); err != nil && !hasCode(err, codeStreamNotFound) {
			return fmt.Errorf("blob %.12s: %w", digest, err)
		}
	}
	return nil
}
