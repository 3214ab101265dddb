package oip

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// inputOf is a ModelInferRequest with one input of n elements, and typed contents.
func inputOf(d Datatype, n int, contents ...[]byte) []byte {
	t := Tensor{Name: "x", Datatype: d, Shape: []int64{int64(n)}}
	return appendMessage(nil, 5, func(m []byte) []byte {
		m = t.appendHead(m)
		for _, c := range contents {
			m = appendBytes(m, 5, c)
		}
		return m
	})
}

// hostile are requests that are small for what they say, in the form of their number of elements.
var hostile = []struct {
	name   string
	body   func(n int) []byte
	decode func(body []byte, reserve Reserve) (*Request, error)
}{
	{"JSON of FP64", jsonList("FP64", "0,"), decodeAll},
	{"JSON of INT8", jsonList("INT8", "0,"), decodeAll},
	{"JSON of BYTES", jsonList("BYTES", `"",`), decodeAll},
	{"packed INT64", func(n int) []byte { return inputOf(Int64, n, appendBytes(nil, 3, make([]byte, n))) }, DecodeProto},
	{"packed BOOL", func(n int) []byte { return inputOf(Bool, n, appendBytes(nil, 1, make([]byte, n))) }, DecodeProto},
	{"single BOOL", func(n int) []byte { return inputOf(Bool, n, bytes.Repeat([]byte{8, 1}, n)) }, DecodeProto},
	{"a message for each BOOL", func(n int) []byte {
		list := make([][]byte, n)
		for i := range list {
			list[i] = []byte{8, 1}
		}
		return inputOf(Bool, n, list...)
	}, DecodeProto},
	{"BYTES", func(n int) []byte { return inputOf(Bytes, n, bytes.Repeat([]byte{8<<3 | 2, 0}, n)) }, DecodeProto},
	{"single FP32", func(n int) []byte {
		return inputOf(FP32, n, bytes.Repeat(binary.LittleEndian.AppendUint32([]byte{6<<3 | 5}, 1<<30), n))
	}, DecodeProto},
}

func jsonList(d, element string) func(n int) []byte {
	return func(n int) []byte {
		list := strings.Repeat(element, n)
		return fmt.Appendf(nil, `{"inputs":[{"name":"x","datatype":%q,"shape":[%d],"data":[%s]}]}`, d, n, list[:len(list)-1])
	}
}

func decodeAll(body []byte, reserve Reserve) (*Request, error) {
	return DecodeJSON(body, len(body), 16, reserve)
}

// TestReserve: decoders take no more memory than they reserved, give or take the growth
// of a list, and none before that.
func TestReserve(t *testing.T) {
	const n = 200_000
	for _, tc := range hostile {
		body := tc.body(n)
		reserved := int64(0)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := tc.decode(body, func(bytes int64) error {
			reserved += bytes
			return nil
		})
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if x := &r.Inputs[0]; x.check() != nil || x.Shape[0] != n {
			t.Errorf("%s: %v", tc.name, x.check())
		}
		// A list that grows by appending takes up to five times its last size in all.
		if took := int64(after.TotalAlloc - before.TotalAlloc); took > 5*reserved+64<<10 || reserved > 9*int64(len(body)) {
			t.Errorf("%s: %d bytes were reserved and %d taken for a body of %d", tc.name, reserved, took, len(body))
		}
		full := errors.New("full")
		if _, err := tc.decode(body, func(int64) error { return full }); !errors.Is(err, full) {
			t.Errorf("%s: %v where there is no memory", tc.name, err)
		}
	}
}

// TestReserveElements: a list ends where it has more elements than the shape says, and
// a shape alone reserves nothing.
func TestReserveElements(t *testing.T) {
	most := int64(0)
	reserve := func(bytes int64) error {
		most = max(most, bytes)
		return nil
	}
	for _, body := range []string{
		`{"inputs":[{"name":"x","datatype":"FP64","shape":[3],"data":[` + strings.Repeat("0,", 1000) + `0]}]}`,
		`{"inputs":[{"name":"x","datatype":"INT8","shape":[1,3],"data":[[` + strings.Repeat("1.0,", 1000) + `1]]}]}`,
		`{"inputs":[{"name":"x","datatype":"BOOL","shape":[0],"data":[true]}]}`,
	} {
		if _, err := decodeAll([]byte(body), reserve); !errors.Is(err, ErrMessage) || !strings.Contains(err.Error(), "more elements than shape") {
			t.Errorf("%.60s: %v", body, err)
		}
	}
	for _, message := range [][]byte{
		inputOf(Int64, 3, appendBytes(nil, 3, make([]byte, 1000))),
		inputOf(Uint8, 0, appendBytes(nil, 4, []byte{0})),
		inputOf(Bool, 1, []byte{8, 1}, []byte{8, 1}),
	} {
		if _, err := DecodeProto(message, reserve); !errors.Is(err, ErrMessage) || !strings.Contains(err.Error(), "more elements than shape") {
			t.Errorf("%x: %v", message[:20], err)
		}
	}
	for _, n := range []int{1 << 40, 1 << 62} {
		for _, decode := range []func() (*Request, error){
			func() (*Request, error) {
				return decodeAll(fmt.Appendf(nil, `{"inputs":[{"name":"x","datatype":"UINT8","shape":[%d],"data":[0,0]}]}`, n), reserve)
			},
			func() (*Request, error) {
				return DecodeProto(inputOf(Int64, n, appendBytes(nil, 3, []byte{0, 0})), reserve)
			},
		} {
			if _, err := decode(); !errors.Is(err, ErrMessage) {
				t.Errorf("%d elements: %v", n, err)
			}
		}
	}
	if most > 64 {
		t.Errorf("%d bytes were reserved", most)
	}
}
