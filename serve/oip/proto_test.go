package oip

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

// message builds protocol buffers by hand, apart from the code under test.
type message []byte

func (m message) bytes(number int, b []byte) message {
	return append(append(m, byte(number<<3|2), byte(len(b))), b...)
}

func (m message) text(number int, s string) message { return m.bytes(number, []byte(s)) }

func (m message) varint(number int, x uint64) message {
	return binary.AppendUvarint(append(m, byte(number<<3)), x)
}

// param is an entry of a map of parameters.
func param(name string, value message) message { return message{}.text(1, name).bytes(2, value) }

func TestDecodeProto(t *testing.T) {
	double := append(message{4<<3 | 1}, binary.LittleEndian.AppendUint64(nil, math.Float64bits(1.5))...)
	negative := message{}.varint(2, 1<<64-3) // -3 in two's complement
	x := message{}.text(1, "x").text(2, "INT32").bytes(3, []byte{1, 2}).bytes(5, message{}.bytes(2, []byte{7, 8}))
	y := message{}.text(1, "y").text(2, "FP32").varint(3, 1).bytes(4, param("p", message{}.varint(1, 0))).
		bytes(5, append(message{6<<3 | 5}, binary.LittleEndian.AppendUint32(nil, math.Float32bits(2.5))...))
	m := message{}.text(1, "m").text(2, "3").text(3, "id").
		bytes(4, param("a", message{}.varint(1, 1))).bytes(4, param("b", negative)).bytes(4, param("c", message{}.text(3, "s"))).
		bytes(4, param("d", double)).bytes(4, param("e", message{}.varint(5, 1<<63))).
		bytes(5, x).bytes(5, y).bytes(6, message{}.text(1, "out").bytes(2, param("q", message{}.varint(1, 1)))).varint(15, 9)
	r, err := DecodeProto(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(r.Model, r.Version, r.ID, r.Params); got != "m3idmap[a:true b:-3 c:s d:1.5 e:9223372036854775808]" {
		t.Error(got)
	}
	if got := fmt.Sprint(r.Inputs); got != "[{x INT32 [1 2] map[] [7 0 0 0 8 0 0 0]} {y FP32 [1] map[p:false] [0 0 32 64]}]" {
		t.Error(got)
	}
	if got := fmt.Sprint(r.Outputs); got != "[{out map[q:true]}]" {
		t.Error(got)
	}
}

// TestDecodeProtoContents reads each datatype from its own field, packed and not, and
// from raw contents, and refuses the fields of others.
func TestDecodeProtoContents(t *testing.T) {
	for _, d := range Datatypes {
		head := message{}.text(1, "x").text(2, string(d)).bytes(3, []byte{2})
		number, _ := contentsOf(d)
		var want []byte
		var packed, single message
		switch d {
		case FP16, BF16:
			if _, err := DecodeProto(message{}.bytes(5, head.bytes(5, message{}.bytes(4, []byte{1, 0}))), nil); err == nil || !strings.Contains(err.Error(), "raw_input_contents") {
				t.Error(d, err)
			}
		case Bytes:
			want = AppendText(AppendText(nil, "a"), "")
			packed = message{}.text(8, "a").text(8, "")
			single = packed
		case FP32, FP64:
			for _, x := range []float64{1, 0.5} {
				want, _ = AppendFloat(want, d, x)
			}
			packed = message{}.bytes(number, want)
			wire := byte(5)
			if d == FP64 {
				wire = 1
			}
			tag := byte(number<<3) | wire
			single = append(append(append(message{tag}, want[:d.Size()]...), tag), want[d.Size():]...)
		default:
			want, _ = AppendFloat(want, d, 1)
			want, _ = AppendFloat(want, d, 0)
			packed = message{}.bytes(number, []byte{1, 0})
			single = message{}.varint(number, 1).varint(number, 0)
		}
		for _, c := range []message{packed, single} {
			if c == nil {
				continue
			}
			r, err := DecodeProto(message{}.bytes(5, head.bytes(5, c)), nil)
			if err != nil || !bytes.Equal(r.Inputs[0].Raw, want) {
				t.Errorf("%s from %x: %v, %v", d, c, r, err)
			}
			if _, err := DecodeProto(message{}.bytes(5, head.bytes(5, c)).bytes(7, want), nil); err == nil || !strings.Contains(err.Error(), "beside raw_input_contents") {
				t.Errorf("%s twice: %v", d, err)
			}
			other := message{}.varint(number%5+1, 1)
			if _, err := DecodeProto(message{}.bytes(5, head.bytes(5, other)), nil); !errors.Is(err, ErrMessage) {
				t.Errorf("%s in field %d passes", d, number%5+1)
			}
		}
		if d != Bytes {
			want = make([]byte, 2*d.Size())
		}
		r, err := DecodeProto(message{}.bytes(5, head).bytes(7, want), nil)
		if err != nil || !bytes.Equal(r.Inputs[0].Raw, want) {
			t.Errorf("raw %s: %v", d, err)
		}
		if _, err := DecodeProto(message{}.bytes(5, head).bytes(7, append(want, 1)), nil); err == nil || !strings.Contains(err.Error(), `inputs[0] "x": data:`) {
			t.Errorf("raw %s with a byte more: %v", d, err)
		}
	}
}

func TestDecodeProtoErrors(t *testing.T) {
	in := func(d string, c message) message {
		return message{}.bytes(5, message{}.text(1, "x").text(2, d).bytes(3, []byte{1}).bytes(5, c))
	}
	for want, m := range map[string]message{
		"field 1 is cut off":                                         {1<<3 | 2, 5, 'a'},
		"a field number is cut off or out of range":                  {0x80},
		"field number is cut off or out of range, 2":                 {0, 0},
		"field 1 has the wire type 3":                                {1<<3 | 3},
		"model_name: field 1 has the wire type 0, want 2":            message{}.varint(1, 1),
		"inputs[0]: name: missing":                                   message{}.bytes(5, message{}.text(2, "BOOL").bytes(3, []byte{0})),
		`int_contents: element 0 is beyond the range of INT8`:        in("INT8", message{}.varint(2, 128)),
		`uint_contents: element 0 is beyond the range of UINT16`:     in("UINT16", message{}.varint(4, 65536)),
		`bool_contents: element 0 is beyond the range of BOOL`:       in("BOOL", message{}.varint(1, 2)),
		`int_contents: element 0 is beyond the range of INT32`:       in("INT32", message{}.varint(2, 1<<31)),
		`fp32_contents: 3 bytes are not whole numbers`:               in("FP32", message{}.bytes(6, []byte{1, 2, 3})),
		`datatype: "INT128"`:                                         message{}.bytes(5, message{}.text(1, "x").text(2, "INT128")),
		`raw_input_contents: 2 for 1 inputs`:                         message{}.bytes(5, message{}.text(1, "x").text(2, "BOOL")).text(7, "").text(7, ""),
		`parameters: a: no value`:                                    message{}.bytes(4, message{}.text(1, "a")),
		`parameters: a: field 1 has the wire type 2, want 0`:         message{}.bytes(4, param("a", message{}.text(1, "x"))),
		`outputs[0]: name: missing`:                                  message{}.bytes(6, nil),
		`inputs[0] "x": shape: dimension -1; want 0 or more`:         message{}.bytes(5, message{}.text(1, "x").text(2, "BOOL").varint(3, 1<<64-1)),
		`inputs[0] "x": data: 0 bytes are 0 elements of BOOL; shape`: message{}.bytes(5, message{}.text(1, "x").text(2, "BOOL").varint(3, 1)),
	} {
		if _, err := DecodeProto(m, nil); !errors.Is(err, ErrMessage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%x\ngot  %v\nwant %s", []byte(m), err, want)
		}
	}
}

// TestEncodeProto holds encodings to bytes that were worked out from the public field
// numbers.
func TestEncodeProto(t *testing.T) {
	for _, tc := range []struct {
		name string
		got  []byte
		want string
	}{
		{"flag", AppendFlag(nil, true), "0801"},
		{"no flag", AppendFlag(nil, false), ""},
		{"serving", AppendHealth(nil, true), "0801"},
		{"not serving", AppendHealth(nil, false), "0802"},
		{"server", (&ServerInfo{"p", "v", []string{"a", "b"}}).AppendProto(nil), "0a0170" + "120176" + "1a0161" + "1a0162"},
		{"model", (&ModelInfo{Name: "m", Versions: []string{"1"}, Platform: "p", Inputs: []TensorInfo{{Name: "x", Datatype: "BOOL", Shape: []int64{-1, 5}}}}).AppendProto(nil),
			"0a016d" + "120131" + "1a0170" + "2216" + "0a0178" + "1204424f4f4c" + "1a0b" + "ffffffffffffffffff01" + "05"},
		{"tensor's parameters", (&ModelInfo{Outputs: []TensorInfo{{Name: "y", Datatype: "INT8", Shape: []int64{1}, Params: Params{"o": true}}}}).AppendProto(nil),
			"2a15" + "0a0179" + "1204494e5438" + "1a0101" + "2207" + "0a016f" + "1202" + "0801"},
		{"index", AppendIndex(nil, []IndexEntry{{"m", "1", "READY", ""}}), "0a0d" + "0a016d" + "120131" + "1a055245414459"},
		{"response", (&Response{Model: "m", ID: "i", Params: Params{"s": uint64(300)}, Outputs: []Tensor{{Name: "y", Datatype: "INT8", Shape: []int64{2}, Raw: []byte{1, 2}}}}).AppendProto(nil),
			"0a016d" + "1a0169" + "2208" + "0a0173" + "1203" + "28ac02" + "2a0c" + "0a0179" + "1204494e5438" + "1a0102" + "32020102"},
		{"parameters", appendParams(nil, 4, Params{"a": int64(-1)}), "2210" + "0a0161" + "120b" + "10ffffffffffffffffff01"},
		{"statistics", AppendStatistics(nil, []Statistics{{Name: "m", InferenceCount: 2, Inference: InferStatistics{Queue: Duration{1, 300}}, Batches: []BatchStatistics{{Size: 4, Infer: Duration{1, 5}}}}}),
			"0a26" + "0a016d" + "2002" + "3211" + "0a00" + "1200" + "1a05080110ac02" + "2200" + "2a00" + "3200" + "3a0c" + "0804" + "1200" + "1a0408011005" + "2200"},
	} {
		if got := hex.EncodeToString(tc.got); got != tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tc.name, got, tc.want)
		}
	}
}

func TestDecodeRefs(t *testing.T) {
	if r, err := DecodeModelRef(message{}.text(1, "m").text(2, "1")); err != nil || r != (ModelRef{"m", "1"}) {
		t.Error(r, err)
	}
	if r, err := DecodeRepositoryRef(message{}.text(1, "r").text(2, "m")); err != nil || r != (RepositoryRef{"r", "m", false}) {
		t.Error(r, err)
	}
	if _, err := DecodeRepositoryRef(message{}.bytes(3, nil)); !errors.Is(err, ErrMessage) {
		t.Error(err)
	}
	if r, err := DecodeRepositoryIndex(message{}.varint(2, 1)); err != nil || !r.Ready {
		t.Error(r, err)
	}
	if s, err := DecodeHealth(message{}.text(1, "s")); err != nil || s != "s" {
		t.Error(s, err)
	}
	if _, err := DecodeHealth(message{8}); !errors.Is(err, ErrMessage) {
		t.Error(err)
	}
}

// FuzzProto: nothing panics, and what is accepted has whole tensors.
func FuzzProto(f *testing.F) {
	f.Add([]byte(message{}.text(1, "m").bytes(5, message{}.text(1, "x").text(2, "INT32").bytes(3, []byte{1}).bytes(5, message{}.bytes(2, []byte{7})))))
	f.Add([]byte(message{}.bytes(5, message{}.text(1, "x").text(2, "BYTES").bytes(3, []byte{1})).bytes(7, AppendText(nil, "a"))))
	f.Add([]byte(message{}.bytes(4, param("a", message{}.varint(5, 1)))))
	f.Fuzz(func(t *testing.T, m []byte) {
		for _, err := range []error{
			func() error { _, err := DecodeModelRef(m); return err }(),
			func() error { _, err := DecodeRepositoryRef(m); return err }(),
			func() error { _, err := DecodeRepositoryIndex(m); return err }(),
			func() error { _, err := DecodeHealth(m); return err }(),
		} {
			if err != nil && !errors.Is(err, ErrMessage) {
				t.Fatal(err)
			}
		}
		r, err := DecodeProto(m, nil)
		if err != nil {
			if !errors.Is(err, ErrMessage) {
				t.Fatal(err)
			}
			return
		}
		for i := range r.Inputs {
			if err := r.Inputs[i].check(); err != nil {
				t.Fatal(err)
			}
			if len(r.Inputs[i].Raw) > 8*len(m) {
				t.Fatalf("%d bytes of a message of %d", len(r.Inputs[i].Raw), len(m))
			}
		}
		(&Response{Params: r.Params, Outputs: r.Inputs}).AppendProto(nil)
	})
}
