// Package wire is the binary form of cluster frames, for transports of bytes.
//
// # Shapes and units
//
// A frame is a header of HeaderBytes, then its payload. All numbers are
// little-endian:
//
//	 0  magic "PCEF"
//	 4  format, 1
//	 5  kind
//	 6  zero, 2 bytes
//	 8  fence of the term, 8 bytes
//	16  generation of the term, 4 bytes
//	20  bytes of the payload, 4 bytes
//	24  lineage of the version, 8 bytes
//	32  moves of the version, 8 bytes
//	40  offset, 8 bytes
//	48  count, 8 bytes
//	56  zero, 4 bytes
//	60  CRC-32C of bytes 0 to 59 and the payload, 4 bytes
//
// Where payloads cannot change on their way, both sides may leave them out of
// the checksum: PutBareHeader and CheckBare.
//
// # Errors
//
// ErrFrame is the class of all; it matches cluster.ErrCluster.
//
// # Goroutines
//
// Functions may be called from any.
//
// # Source
//
// The checksum is that of RFC 3720, appendix B.4.
package wire

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/pce-engine/pce/cluster"
)

// HeaderBytes is the length of a header.
const HeaderBytes = 64

const (
	magic  = "PCEF"
	format = 1
)

// ErrFrame means that bytes are not a frame, or that a frame has no binary form.
var ErrFrame = fmt.Errorf("%w: bad frame", cluster.ErrCluster)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// PutHeader writes the header of a frame to the first HeaderBytes of dst. It
// refuses unknown kinds and payloads above cluster.MaxFrameBytes.
func PutHeader(dst []byte, f *cluster.Frame) error {
	if err := PutBareHeader(dst, f); err != nil {
		return err
	}
	Seal(dst, f.Payload)
	return nil
}

// PutBareHeader is PutHeader, but its checksum is that of bytes 0 to 59 alone:
// CheckBare takes it, and Check does after Seal.
func PutBareHeader(dst []byte, f *cluster.Frame) error {
	if f.Kind < cluster.FlowFrame || f.Kind > cluster.ErrorFrame {
		return fmt.Errorf("%w: kind %d, want 1 to 5", ErrFrame, f.Kind)
	}
	if len(f.Payload) > cluster.MaxFrameBytes {
		return fmt.Errorf("%w: payload of %d bytes, at most %d go into one; send more frames",
			ErrFrame, len(f.Payload), cluster.MaxFrameBytes)
	}
	h := dst[:HeaderBytes]
	clear(h)
	copy(h, magic)
	h[4] = format
	h[5] = uint8(f.Kind)
	le := binary.LittleEndian
	le.PutUint64(h[8:], f.Term.Fence)
	le.PutUint32(h[16:], f.Term.Generation)
	le.PutUint32(h[20:], uint32(len(f.Payload)))
	le.PutUint64(h[24:], f.Version.Lineage)
	le.PutUint64(h[32:], uint64(f.Version.Moves))
	le.PutUint64(h[40:], uint64(f.Offset))
	le.PutUint64(h[48:], uint64(f.Count))
	le.PutUint32(h[60:], sum(h, nil))
	return nil
}

// Seal makes the checksum of a header of PutBareHeader that of the payload too.
func Seal(h, payload []byte) {
	le := binary.LittleEndian
	le.PutUint32(h[60:], crc32.Update(le.Uint32(h[60:]), castagnoli, payload))
}

// Header reads all of a frame but its payload, and returns how many bytes that
// has: at most cluster.MaxFrameBytes.
func Header(h []byte, f *cluster.Frame) (int, error) {
	if len(h) < HeaderBytes {
		return 0, fmt.Errorf("%w: %d bytes, a header has %d", ErrFrame, len(h), HeaderBytes)
	}
	le := binary.LittleEndian
	if string(h[:4]) != magic || h[4] != format {
		return 0, fmt.Errorf("%w: starts with %q format %d, want %q format %d; run one version of pce everywhere",
			ErrFrame, h[:4], h[4], magic, format)
	}
	kind, size := cluster.FrameKind(h[5]), le.Uint32(h[20:])
	if kind < cluster.FlowFrame || kind > cluster.ErrorFrame {
		return 0, fmt.Errorf("%w: kind %d, want 1 to 5", ErrFrame, kind)
	}
	if size > cluster.MaxFrameBytes {
		return 0, fmt.Errorf("%w: claims a payload of %d bytes, at most %d are allowed", ErrFrame, size, cluster.MaxFrameBytes)
	}
	*f = cluster.Frame{
		Kind:    kind,
		Term:    cluster.Term{Fence: le.Uint64(h[8:]), Generation: le.Uint32(h[16:])},
		Version: cluster.Version{Lineage: le.Uint64(h[24:]), Moves: int64(le.Uint64(h[32:]))},
		Offset:  int64(le.Uint64(h[40:])),
		Count:   int64(le.Uint64(h[48:])),
	}
	return int(size), nil
}

// Check compares the checksum of a header that Header took with that of the
// header and its payload.
func Check(h, payload []byte) error {
	if got, want := sum(h, payload), binary.LittleEndian.Uint32(h[60:]); got != want {
		return fmt.Errorf("%w: checksum %08x, want %08x", ErrFrame, got, want)
	}
	return nil
}

// CheckBare compares the checksum of a header of PutBareHeader that Header took.
func CheckBare(h []byte) error { return Check(h, nil) }

func sum(h, payload []byte) uint32 {
	return crc32.Update(crc32.Update(0, castagnoli, h[:60]), castagnoli, payload)
}
