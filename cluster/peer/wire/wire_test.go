package wire

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/pce-engine/pce/cluster"
)

func whole(t testing.TB, f *cluster.Frame) []byte {
	t.Helper()
	b := make([]byte, HeaderBytes, HeaderBytes+len(f.Payload))
	if err := PutHeader(b, f); err != nil {
		t.Fatal(err)
	}
	return append(b, f.Payload...)
}

func read(b []byte) (cluster.Frame, error) {
	var f cluster.Frame
	n, err := Header(b, &f)
	if err != nil {
		return f, err
	}
	if len(b)-HeaderBytes != n {
		return f, ErrFrame
	}
	f.Payload = b[HeaderBytes:]
	return f, Check(b[:HeaderBytes], f.Payload)
}

var edge = cluster.Frame{
	Kind: cluster.StateFrame, Term: cluster.Term{Fence: math.MaxUint64, Generation: math.MaxUint32},
	Version: cluster.Version{Lineage: math.MaxUint64 - 1, Moves: math.MinInt64},
	Offset:  math.MaxInt64, Count: -1, Payload: []byte("payload"),
}

func TestRoundTrip(t *testing.T) {
	got, err := read(whole(t, &edge))
	if err != nil || !reflect.DeepEqual(got, edge) {
		t.Fatalf("read = %+v, %v, want %+v", got, err, edge)
	}
}

// TestEveryBit flips each bit of a frame: none may go unseen.
func TestEveryBit(t *testing.T) {
	b := whole(t, &edge)
	for i := range 8 * len(b) {
		c := bytes.Clone(b)
		c[i/8] ^= 1 << (i % 8)
		if _, err := read(c); !errors.Is(err, ErrFrame) {
			t.Errorf("bit %d flipped: %v, want ErrFrame", i, err)
		}
	}
}

// TestBare checks that a bare header's checksum is its own, and Seal makes it that
// of the payload too.
func TestBare(t *testing.T) {
	h := make([]byte, HeaderBytes)
	if err := PutBareHeader(h, &edge); err != nil {
		t.Fatal(err)
	}
	if err := CheckBare(h); err != nil {
		t.Error(err)
	}
	for i := range 8 * HeaderBytes {
		c := bytes.Clone(h)
		c[i/8] ^= 1 << (i % 8)
		if err := CheckBare(c); !errors.Is(err, ErrFrame) {
			t.Errorf("bit %d flipped: %v, want ErrFrame", i, err)
		}
	}
	if err := Check(h, edge.Payload); !errors.Is(err, ErrFrame) {
		t.Errorf("Check of a bare header: %v, want ErrFrame", err)
	}
	Seal(h, edge.Payload)
	if whole := whole(t, &edge); !bytes.Equal(h, whole[:HeaderBytes]) {
		t.Errorf("sealed header %x, want %x", h, whole[:HeaderBytes])
	}
}

func TestRefused(t *testing.T) {
	h := make([]byte, HeaderBytes)
	for _, f := range []cluster.Frame{
		{},
		{Kind: cluster.ErrorFrame + 1},
		{Kind: cluster.FlowFrame, Payload: make([]byte, cluster.MaxFrameBytes+1)},
	} {
		if err := PutHeader(h, &f); !errors.Is(err, ErrFrame) {
			t.Errorf("PutHeader of kind %d, %d bytes: %v, want ErrFrame", f.Kind, len(f.Payload), err)
		}
	}
	if _, err := Header(whole(t, &edge)[:HeaderBytes-1], new(cluster.Frame)); !errors.Is(err, ErrFrame) {
		t.Errorf("short header: %v, want ErrFrame", err)
	}
}

// FuzzHeader reads any bytes: what is taken is bounded, and written back the same.
func FuzzHeader(f *testing.F) {
	f.Add(whole(f, &edge))
	f.Add([]byte("PCEF\x01\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, err := read(b)
		if err != nil {
			if !errors.Is(err, ErrFrame) {
				t.Fatalf("error %v of another class", err)
			}
			return
		}
		if again := whole(t, &frame); !bytes.Equal(again[:6], b[:6]) || !bytes.Equal(again[8:56], b[8:56]) {
			t.Fatalf("written back as %x, was %x", again, b)
		}
	})
}
