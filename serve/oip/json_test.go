package oip

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// whole decodes a body that is JSON alone.
func whole(text string) (*Request, error) { return DecodeJSON([]byte(text), len(text), 16, nil) }

// tensor wraps the fields of an input.
func tensor(fields string) string { return `{"inputs":[{"name":"x",` + fields + `}]}` }

func TestDecodeJSON(t *testing.T) {
	r, err := whole(` { "id" : "\u00e9\ud83d\ude00\n" , "parameters":{"a":true,"b":-3,"c":18446744073709551615,"d":1.5,"e":"s"},
		"inputs":[{"name":"x","shape":[2,2],"datatype":"INT16","data":[[1,-2],[3,32767]],"parameters":{"p":1}}],"outputs":[{"name":"y","parameters":{"q":false}}] } `)
	if err != nil {
		t.Fatal(err)
	}
	if r.ID != "é😀\n" || fmt.Sprint(r.Params) != "map[a:true b:-3 c:18446744073709551615 d:1.5 e:s]" || fmt.Sprint(r.Outputs) != "[{y map[q:false]}]" {
		t.Errorf("%q %v %v", r.ID, r.Params, r.Outputs)
	}
	x := r.Inputs[0]
	if x.Name != "x" || x.Datatype != Int16 || fmt.Sprint(x.Shape, x.Raw) != "[2 2] [1 0 254 255 3 0 255 127]" {
		t.Errorf("%+v", x)
	}
}

// TestDecodeJSONNumbers reads each datatype at both ends of its range and one beyond.
func TestDecodeJSONNumbers(t *testing.T) {
	for _, tc := range []struct {
		datatype Datatype
		good     string
		bad      []string
	}{
		{Bool, "true,false,1,0", []string{"2", "-1", `"true"`, "null"}},
		{Uint8, "0,255,2e1,3.0,-0,0e99,0.00", []string{"-1", "256", "1.5", "true", "1e99", "2.550e1", "2560e-1"}},
		{Int8, "-128,127", []string{"-129", "128"}},
		{Uint16, "0,65535", []string{"-1", "65536"}},
		{Int16, "-32768,32767", []string{"-32769", "32768"}},
		{Uint32, "0,4294967295", []string{"-1", "4294967296"}},
		{Int32, "-2147483648,2147483647", []string{"-2147483649", "2147483648"}},
		{Uint64, "0,18446744073709551615", []string{"-1", "18446744073709551616"}},
		{Int64, "-9223372036854775808,9223372036854775807", []string{"9223372036854775808", "-9223372036854775809"}},
		{FP16, `0.5,-2,null,65504,-65519.9,1e-9,"Infinity"`, []string{`"1"`, "true", "[1]", "70000", "-65520", "1e5"}},
		{BF16, `0.5,-2,3.389e38,"-Infinity"`, []string{"3.4e38", "-3.4e38", "1e39"}},
		{FP32, `0.5,-0.0,3.4e38,"NaN","Infinity","-Infinity",null`, []string{"1e39", `"inf"`, "nul"}},
		{FP64, `0.1,1.7e308,-0,123456789012345678`, []string{"1e309", "0x1", "1_0", ".5", "5.", "01", "+1"}},
		{Bytes, `"","é","\u0000"`, []string{"1", "null", `"\x"`, `"\ud800"`}},
		{"BF8", "", []string{"1"}},
	} {
		if n := strings.Count(tc.good, ",") + 1; tc.good != "" {
			r, err := whole(tensor(fmt.Sprintf(`"shape":[%d],"datatype":%q,"data":[%s]`, n, tc.datatype, tc.good)))
			if err != nil {
				t.Errorf("%s %s: %v", tc.datatype, tc.good, err)
				continue
			}
			// What is written reads back to the same bytes.
			out, _ := (&Response{Outputs: r.Inputs}).AppendJSON(nil, func(string) bool { return false })
			if !json.Valid(out) {
				t.Errorf("%s is not JSON", out)
			}
			back, err := whole(strings.Replace(string(out), `"outputs"`, `"inputs"`, 1))
			if err != nil || !bytes.Equal(back.Inputs[0].Raw, r.Inputs[0].Raw) {
				t.Errorf("%s: %v\n%v\n%v", out, err, back, r.Inputs[0].Raw)
			}
		}
		for _, bad := range tc.bad {
			_, err := whole(tensor(fmt.Sprintf(`"shape":[1],"datatype":%q,"data":[%s]`, tc.datatype, bad)))
			if !errors.Is(err, ErrMessage) || !strings.Contains(err.Error(), `inputs[0] "x"`) {
				t.Errorf("%s %s: %v", tc.datatype, bad, err)
			}
		}
	}
}

// TestDecodeJSONRounds: a number is rounded to its datatype once, and one that would be rounded to an infinity is refused,
// as an infinity is impossible as a value.
func TestDecodeJSONRounds(t *testing.T) {
	for _, tc := range []struct {
		datatype   Datatype
		text, want string
	}{
		{FP32, "1.00000005960464477539", "[0 0 128 63]"},     // half-way between 1 and the next number
		{FP32, "1.00000005960464477540", "[1 0 128 63]"},     // more, though float64 does not hold it
		{FP32, "3.4028235677973366e38", "[255 255 127 127]"}, // less than half-way to where the next number would be
		{FP32, "3.4028235677973367e38", "3.4028235677973367e38 is beyond the range of FP32"},
		{FP32, "999999999999999", "[169 95 99 88]"},
		{FP16, "65519.99", "[255 123]"},
		{FP16, "65520", "65520 is beyond the range of FP16"},
		{FP16, "-70000.5", "-70000.5 is beyond the range of FP16"},
		{BF16, "3.39e38", "[127 127]"},
		{BF16, "3.4e38", "3.4e+38 is beyond the range of BF16"},
	} {
		r, err := whole(tensor(fmt.Sprintf(`"shape":[1],"datatype":%q,"data":[%s]`, tc.datatype, tc.text)))
		got := ""
		if err != nil {
			got = err.Error()[strings.LastIndex(err.Error(), ": ")+2:]
		} else {
			got = fmt.Sprint(r.Inputs[0].Raw)
		}
		if got != tc.want {
			t.Errorf("%s %s: %s, want %s", tc.datatype, tc.text, got, tc.want)
		}
	}
}

// TestDecodeJSONIntegers: integers keep their digits, however they are written.
func TestDecodeJSONIntegers(t *testing.T) {
	for text, want := range map[string]string{
		"9007199254740993": "9007199254740993", "9007199254740993.0": "9007199254740993", "-9007199254740993.00e0": "-9007199254740993", "900719925474099.3E1": "9007199254740993",
		"90071992547409930e-1": "9007199254740993", "1e18": "1000000000000000000", "-0.001e+21": "-1000000000000000000", "0.00e5": "0", "-0e999999999999999999999": "0",
		"9223372036854775807.0": "9223372036854775807", "-922337203685477580.8e1": "-9223372036854775808", "922337203685477580.8e1": "", "1e19": "", "10e20": "",
		"1e-1": "", "10.05e1": "", "1e999999999999999999999": "", "1e-9223372036854775808": "", "1e9223372036854775807": "", "0.5": "", "-10.000001": "",
	} {
		r, err := whole(tensor(fmt.Sprintf(`"shape":[1],"datatype":"INT64","data":[%s]`, text)))
		got := ""
		if err == nil {
			got = fmt.Sprint(int64(binary.LittleEndian.Uint64(r.Inputs[0].Raw)))
		} else if !strings.Contains(err.Error(), text+" is not an integer of INT64") {
			t.Errorf("%s: %v", text, err)
		}
		if got != want {
			t.Errorf("%s is read as %q, want %q", text, got, want)
		}
	}
}

// TestDecodeJSONErrors names the tensor and the field, whatever is wrong.
func TestDecodeJSONErrors(t *testing.T) {
	for text, want := range map[string]string{
		``:            "want '{', found the end",
		`[]`:          `want '{', found "[]"`,
		`{"inputs":1`: `want '['`,
		`{} {}`:       `nothing may follow the request`,
		`{"id":1}`:    `id: want a string`,
		`{"id":"` + strings.Repeat("a", MaxName+1) + `"}`:                                                            `id: longer than 1024 bytes`,
		`{"parameters":{"a":null}}`:                                                                                  `parameters: a: want a string, a number, true or false`,
		`{"parameters":{"a":1e999}}`:                                                                                 `parameters: a: 1e999 is not a number that fits`,
		`{"a":[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]}`:                                                                 `nested too deeply`,
		`{"inputs":[{"shape":[1],"datatype":"BOOL","data":[1]}]}`:                                                    `inputs[0]: name: missing`,
		tensor(`"datatype":"BOOL","data":[1]`):                                                                       `inputs[0] "x": shape: missing`,
		tensor(`"shape":[1],"data":[1]`):                                                                             `inputs[0] "x": datatype: ""`,
		tensor(`"shape":[1],"datatype":"BOOL"`):                                                                      `inputs[0] "x": data: missing`,
		tensor(`"shape":[1],"datatype":"BOOL","data":[1],"data":[1]`):                                                `data: given twice`,
		tensor(`"shape":[1],"datatype":"INT64","data":[1],"datatype":"FP64"`):                                        `datatype: given twice`,
		tensor(`"shape":[2],"datatype":"BOOL","data":[1],"shape":[1]`):                                               `shape: given twice`,
		tensor(`"name":"y","shape":[1],"datatype":"BOOL","data":[1]`):                                                `name: given twice`,
		tensor(`"shape":[1.5],"datatype":"BOOL","data":[1]`):                                                         `shape: dimension 1.5`,
		tensor(`"shape":[-1],"datatype":"BOOL","data":[1]`):                                                          `shape: dimension -1`,
		tensor(`"shape":[9223372036854775807,3],"datatype":"BOOL","data":[1]`):                                       `more elements than fit 63 bits`,
		tensor(`"shape":[4611686018427387904],"datatype":"FP64","data":[1]`):                                         `data: 8 bytes are 1 element of FP64`,
		tensor(`"shape":[2],"datatype":"BOOL","data":[1]`):                                                           `data: 1 bytes are 1 element of BOOL; shape [2] wants 2`,
		tensor(`"shape":[2,2],"datatype":"BOOL","data":[[1,1,1],[1]]`):                                               `data: lists of 3 and 1 members side by side`,
		tensor(`"shape":[2,2],"datatype":"BOOL","data":[[1,1],1,1]`):                                                 `data: lists and elements are mixed`,
		tensor(`"shape":[4],"datatype":"BOOL","data":[[1,1],[1,1]]`):                                                 `data: nested 2 deep; shape [4] wants 1`,
		tensor(`"shape":[1,4],"datatype":"BOOL","data":[[1,1],[1,1]]`):                                               `data: lists of 2 members where shape [1 4] wants 1`,
		tensor(`"shape":[2,1,1],"datatype":"BOOL","data":[[1],[[1]]]`):                                               `data: element 1 is deeper`,
		tensor(`"shape":[2,1,1],"datatype":"BOOL","data":[[[1]],[1]]`):                                               `data: element 1 is less deep`,
		tensor(`"shape":[1],"datatype":"BOOL","parameters":{"binary_data_size":1},"data":[1]`):                       `data: given beside the parameter binary_data_size`,
		tensor(`"shape":[1],"datatype":"BOOL","parameters":{"binary_data_size":1}`):                                  `binary_data_size is 1; 0 bytes are left`,
		tensor(`"shape":[1],"datatype":"BOOL","parameters":{"binary_data_size":"1"}`):                                `binary_data_size is 1;`,
		tensor(`"shape":[` + strings.Repeat("1,", MaxDims) + `1]`):                                                   `shape: more than 16 dimensions`,
		`{"inputs":[` + strings.Repeat(`{"name":"x","shape":[0],"datatype":"BOOL","data":[]},`, MaxTensors) + `{}]}`: `inputs: more than 64`,
		`{"inputs":[],"inputs":[]}`:                                                                                  `inputs: given twice`,
		`{"outputs":[],"outputs":[]}`:                                                                                `outputs: given twice`,
		`{"id":"a","id":"a"}`:                                                                                        `id: given twice`,
		`{"parameters":{},"parameters":{}}`:                                                                          `parameters: given twice`,
		`{"parameters":{"query":"sample","query":"mpe"}}`:                                                            `parameters: query: given twice`,
		`{"outputs":[{"name":"y","parameters":{},"name":"z"}]}`:                                                      `outputs[0] "y": name: given twice`,
		`{"outputs":[{}]}`:          `outputs[0]: name: missing`,
		`{"outputs":[{"name":[]}]}`: `outputs[0]: name: want a string`,
		"{\"id\":\"a\x01\"}":        `control character`,
		"{\"id\":\"\xff\"}":         `not UTF-8`,
	} {
		if _, err := whole(text); !errors.Is(err, ErrMessage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s\ngot  %v\nwant %s", text, err, want)
		}
	}
	if _, err := DecodeJSON([]byte("{}x"), 2, 16, nil); err == nil || !strings.Contains(err.Error(), "1 bytes follow the last binary tensor") {
		t.Error(err)
	}
	for _, header := range []int{-1, 3} {
		if _, err := DecodeJSON([]byte("{}"), header, 16, nil); !errors.Is(err, ErrMessage) {
			t.Error(header, err)
		}
	}
}

// TestDecodeJSONDepth tries both sides of the limit, also for contents that come
// before the shape.
func TestDecodeJSONDepth(t *testing.T) {
	for _, text := range []string{
		tensor(`"shape":[1,1],"datatype":"BOOL","data":[[1]]`),
		tensor(`"data":[[1]],"shape":[1,1],"datatype":"BOOL"`),
	} {
		for depth, ok := range map[int]bool{4: false, 5: true} { // request, inputs, tensor, list, list
			if _, err := DecodeJSON([]byte(text), len(text), depth, nil); (err == nil) != ok {
				t.Errorf("depth %d: %v", depth, err)
			}
		}
	}
}

// TestDecodeJSONPlain reads lists that are written compactly as those that are not.
func TestDecodeJSONPlain(t *testing.T) {
	numbers := []string{"0", "1", "9", "10", "127", "128", "255", "256", "65535", "65536", "16777216", "16777217", "2147483647", "2147483648", "4294967296",
		"999999999999999", "1000000000000000", "1125899906842624", "1125899906842625", "9999999999999999", "12345678901234567890", "00", "01", "-1", "1.5", "1e2", "null", "true"}
	for _, d := range Datatypes {
		for _, x := range numbers {
			var got [2][]byte
			var errs [2]error
			for i, comma := range []string{" , ", ","} {
				r, err := whole(tensor(fmt.Sprintf(`"shape":[3],"datatype":%q,"data":[1%s%s%s0]`, d, comma, x, comma)))
				if errs[i] = err; err == nil {
					got[i] = r.Inputs[0].Raw
				}
			}
			if (errs[0] == nil) != (errs[1] == nil) || !bytes.Equal(got[0], got[1]) {
				t.Errorf("%s %s: %v %v with spaces, %v %v without", d, x, got[0], errs[0], got[1], errs[1])
			}
		}
	}
	r, err := whole(tensor(`"shape":[2,3],"datatype":"UINT8","data":[[1,2, 3],[4, 5,6]]`))
	if err != nil || fmt.Sprint(r.Inputs[0].Raw) != "[1 2 3 4 5 6]" {
		t.Error(r, err)
	}
	if _, err := whole(tensor(`"shape":[6],"datatype":"UINT8","data":[1,2,3,4,300,6]`)); err == nil || !strings.Contains(err.Error(), "element 4: 300") {
		t.Error(err)
	}
}

// TestBoolsOfBinary: a byte of a BOOL tensor is 0 or 1, in both protocols. Readers of another one differ: it is a number to
// some and true to others.
func TestBoolsOfBinary(t *testing.T) {
	for raw, want := range map[string]string{"\x00\x01\x01": "", "\x01\x02\x00": "element 1 is 2; want 0 or 1 in a BOOL", "\x00\x00\xff": "element 2 is 255"} {
		head := tensor(`"shape":[3],"datatype":"BOOL","parameters":{"binary_data_size":3}`)
		_, rest := DecodeJSON([]byte(head+raw), len(head), 16, nil)
		_, grpc := DecodeProto(message{}.bytes(5, message{}.text(1, "x").text(2, "BOOL").bytes(3, []byte{3})).text(7, raw), nil)
		for protocol, err := range map[string]error{"REST": rest, "gRPC": grpc} {
			if want == "" && err != nil || want != "" && (!errors.Is(err, ErrMessage) || !strings.Contains(err.Error(), `inputs[0] "x": data: `+want)) {
				t.Errorf("%s, %q: %v, want %q", protocol, raw, err, want)
			}
		}
	}
}

// TestTextsOfBinary refuses lengths that lie.
func TestTextsOfBinary(t *testing.T) {
	raw := AppendText(AppendText(nil, "ab"), "")
	for cut := range len(raw) {
		x := Tensor{Datatype: Bytes, Shape: []int64{2}, Raw: raw[:cut]}
		if x.check() == nil {
			t.Errorf("%d of %d bytes pass", cut, len(raw))
		}
	}
	x := Tensor{Datatype: Bytes, Shape: []int64{2}, Raw: raw}
	if err := x.check(); err != nil || fmt.Sprint(maps.Collect(x.Texts())) != "map[0:[97 98] 1:[]]" {
		t.Errorf("%v %v", err, maps.Collect(x.Texts()))
	}
	x.Raw = binary.LittleEndian.AppendUint32(nil, math.MaxUint32)
	if x.check() == nil {
		t.Error("an element of 4 GiB passes")
	}
}

// TestHalves reads every number of 16 bits back, and rounds ties to even.
func TestHalves(t *testing.T) {
	for h := range 1 << 16 {
		x := HalfFloat(uint16(h))
		if got := halfBits(x); x == x && got != uint16(h) {
			t.Fatalf("FP16 %#x is %v, which is %#x", h, x, got)
		}
		if x != x && HalfFloat(halfBits(x)) == x {
			t.Fatal("NaN")
		}
		b := BFloat(uint16(h))
		if got := bfloatBits(b); b == b && got != uint16(h) {
			t.Fatalf("BF16 %#x is %v, which is %#x", h, b, got)
		}
	}
	for x, want := range map[float64]float64{
		2049: 2048, 2051: 2052, 65519: 65504, 65520: math.Inf(1), -1e9: math.Inf(-1),
		math.Ldexp(1, -25): 0, math.Ldexp(3, -25): math.Ldexp(2, -24), math.Ldexp(2047, -25): math.Ldexp(1024, -24),
	} {
		if got := HalfFloat(halfBits(x)); got != want {
			t.Errorf("%v rounds to %v, want %v", x, got, want)
		}
	}
	if BFloat(bfloatBits(257)) != 256 || BFloat(bfloatBits(259)) != 260 {
		t.Error("BF16 does not round to even")
	}
	for x, want := range map[float64]float64{ // a hair beside a tie, which float32 does not have
		257 + 0x1p-40: 258, 257 - 0x1p-40: 256, 259 - 0x1p-40: 258, -257 - 0x1p-40: -258,
		0x1p-134 + 0x1p-180: 0x1p-133, 0x1p-134: 0, 0x1p-160: 0, 1e39: math.Inf(1), -1e300: math.Inf(-1),
		0x1.fffffep127 * (1 + 0x1p-40): math.Inf(1), 0x1.fep127 + 0x1p119: math.Inf(1), 0x1.fep127 + 0x1p119 - 0x1p80: 0x1.fep127,
	} {
		if got := BFloat(bfloatBits(x)); got != want {
			t.Errorf("%v rounds to BF16 %v, want %v", x, got, want)
		}
	}
	if x := BFloat(bfloatBits(math.NaN())); x == x {
		t.Error("NaN is lost")
	}
}

// FuzzJSON: what is accepted is JSON, its tensors are whole, and nothing panics.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(tensor(`"shape":[1,2],"datatype":"FP32","data":[[1,"NaN"]]`)), 0)
	f.Add([]byte(tensor(`"data":[true],"datatype":"BOOL","shape":[1]`)), 0)
	f.Add([]byte(tensor(`"shape":[1],"datatype":"INT8","parameters":{"binary_data_size":1}`)+"a"), 1)
	f.Add([]byte(`{"id":"\ud83d\ude00","parameters":{"a":1e3},"outputs":[{"name":"y"}]}`), 0)
	f.Fuzz(func(t *testing.T, body []byte, binary int) {
		header := len(body) - max(0, binary)
		r, err := DecodeJSON(body, header, 16, nil)
		if err != nil {
			if !errors.Is(err, ErrMessage) {
				t.Fatal(err)
			}
			return
		}
		if !json.Valid(body[:header]) {
			t.Fatalf("%q is accepted", body[:header])
		}
		for i := range r.Inputs {
			if err := r.Inputs[i].check(); err != nil {
				t.Fatal(err)
			}
			if len(r.Inputs[i].Raw) > 8*len(body) {
				t.Fatalf("%d bytes of a body of %d", len(r.Inputs[i].Raw), len(body))
			}
		}
		out, n := (&Response{Outputs: r.Inputs, Params: r.Params, ID: r.ID}).AppendJSON(nil, func(string) bool { return false })
		if n != len(out) || !json.Valid(out) {
			t.Fatalf("%q", out)
		}
	})
}

// TestJSONBytes: numbers take no more bytes in JSON than JSONBytes says, which is reserved before a model runs, whatever they are.
func TestJSONBytes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, d := range []Datatype{Bool, Uint8, Int8, Uint16, Int16, Uint32, Int32, Uint64, Int64, FP16, BF16, FP32, FP64} {
		longest := uint64(1) << (8*d.Size() - 1) // of integers with a sign
		elements := []uint64{0, longest, longest - 1, 2*longest - 1, uint64(math.Float32bits(-1.17549435e-38)), math.Float64bits(-2.2250738585072014e-308)}
		for range 1000 {
			elements = append(elements, random.Uint64())
		}
		for _, x := range elements {
			raw := bytes.Repeat(binary.LittleEndian.AppendUint64(nil, x)[:d.Size()], 100)
			text := (&Tensor{Datatype: d, Raw: raw}).appendData(nil)
			if most := len("[]") + d.JSONBytes(len(raw)); len(text) > most {
				t.Errorf("%s: %.40s has %d bytes, at most %d are expected", d, text, len(text), most)
			}
		}
	}
}
