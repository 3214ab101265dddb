package oip

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
)

// AppendJSON appends a response of REST to dst. binary says which outputs go as
// binary tensors after the JSON; header is the number of bytes of JSON, and equals
// the whole where no output is binary.
func (r *Response) AppendJSON(dst []byte, binary func(name string) bool) (out []byte, header int) {
	from := len(dst)
	dst = append(dst, `{"model_name":`...)
	dst = appendString(dst, r.Model)
	dst = append(dst, `,"model_version":`...)
	dst = appendString(dst, r.Version)
	if r.ID != "" {
		dst = append(dst, `,"id":`...)
		dst = appendString(dst, r.ID)
	}
	if len(r.Params) > 0 {
		dst = append(dst, `,"parameters":`...)
		dst = r.Params.append(dst)
	}
	dst = append(dst, `,"outputs":[`...)
	for i := range r.Outputs {
		t := &r.Outputs[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"name":`...)
		dst = appendString(dst, t.Name)
		dst = append(dst, `,"shape":[`...)
		for k, d := range t.Shape {
			if k > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendInt(dst, d, 10)
		}
		dst = append(dst, `],"datatype":`...)
		dst = appendString(dst, string(t.Datatype))
		if binary(t.Name) {
			dst = append(dst, `,"parameters":{"binary_data_size":`...)
			dst = strconv.AppendInt(dst, int64(len(t.Raw)), 10)
			dst = append(dst, '}', '}')
			continue
		}
		dst = append(dst, `,"data":`...)
		dst = t.appendData(dst)
		dst = append(dst, '}')
	}
	dst = append(dst, ']', '}')
	header = len(dst) - from
	for i := range r.Outputs {
		if binary(r.Outputs[i].Name) {
			dst = append(dst, r.Outputs[i].Raw...)
		}
	}
	return dst, header
}

// JSONBytes is about what AppendJSON appends, so that a buffer need not grow.
func (r *Response) JSONBytes() int {
	n := HeadBytes
	for i := range r.Outputs {
		n += r.Outputs[i].Datatype.JSONBytes(len(r.Outputs[i].Raw))
	}
	return n
}

// HeadBytes is about what a response takes beside the contents of its tensors.
const HeadBytes = 512

// JSONBytes is the most that the elements of a tensor take in JSON that take raw bytes as they are: their digits and a comma each.
func (d Datatype) JSONBytes(raw int) int {
	longest := ""
	switch d {
	case Bytes: // which no answer has
		return raw
	case Bool:
		longest = "false,"
	case Uint8:
		longest = "255,"
	case Int8:
		longest = "-128,"
	case Uint16:
		longest = "65535,"
	case Int16:
		longest = "-32768,"
	case Uint32:
		longest = "4294967295,"
	case Int32:
		longest = "-2147483648,"
	case Uint64, Int64:
		longest = "-9223372036854775808,"
	case FP64:
		longest = "-2.2250738585072014e-308,"
	default:
		longest = "-1.17549435e-38,"
	}
	return raw / d.Size() * len(longest)
}

// append appends parameters in the order of their names.
func (p Params) append(dst []byte) []byte {
	dst = append(dst, '{')
	for i, key := range slices.Sorted(maps.Keys(p)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, key)
		dst = append(dst, ':')
		switch x := p[key].(type) {
		case bool:
			dst = strconv.AppendBool(dst, x)
		case int64:
			dst = strconv.AppendInt(dst, x, 10)
		case uint64:
			dst = strconv.AppendUint(dst, x, 10)
		case float64:
			dst = appendNumber(dst, x, 64)
		case string:
			dst = appendString(dst, x)
		default:
			dst = append(dst, "null"...)
		}
	}
	return append(dst, '}')
}

func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c > '~' {
			text, _ := json.Marshal(s) // a string always has a form
			return append(dst, text...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

// appendNumber appends a number that reads back to the same one; those that JSON
// lacks as strings.
func appendNumber(dst []byte, x float64, bits int) []byte {
	switch {
	case x != x:
		return append(dst, `"NaN"`...)
	case math.IsInf(x, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(x, -1):
		return append(dst, `"-Infinity"`...)
	}
	return strconv.AppendFloat(dst, x, 'g', -1, bits)
}

// appendData appends the contents of a tensor as a flat list.
func (t *Tensor) appendData(dst []byte) []byte {
	dst = append(dst, '[')
	if t.Datatype == Bytes {
		for i, text := range t.Texts() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendString(dst, string(text))
		}
		return append(dst, ']')
	}
	size := t.Datatype.Size()
	for i := 0; i+size <= len(t.Raw); i += size {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendElement(dst, t.Datatype, t.Raw[i:i+size])
	}
	return append(dst, ']')
}

func appendElement(dst []byte, d Datatype, raw []byte) []byte {
	le := binary.LittleEndian
	switch d {
	case Bool:
		return strconv.AppendBool(dst, raw[0] != 0)
	case Uint8:
		return strconv.AppendUint(dst, uint64(raw[0]), 10)
	case Int8:
		return strconv.AppendInt(dst, int64(int8(raw[0])), 10)
	case Uint16:
		return strconv.AppendUint(dst, uint64(le.Uint16(raw)), 10)
	case Int16:
		return strconv.AppendInt(dst, int64(int16(le.Uint16(raw))), 10)
	case Uint32:
		return strconv.AppendUint(dst, uint64(le.Uint32(raw)), 10)
	case Int32:
		return strconv.AppendInt(dst, int64(int32(le.Uint32(raw))), 10)
	case Uint64:
		return strconv.AppendUint(dst, le.Uint64(raw), 10)
	case Int64:
		return strconv.AppendInt(dst, int64(le.Uint64(raw)), 10)
	case FP16:
		return appendNumber(dst, HalfFloat(le.Uint16(raw)), 32)
	case BF16:
		return appendNumber(dst, BFloat(le.Uint16(raw)), 32)
	case FP32:
		return appendNumber(dst, float64(math.Float32frombits(le.Uint32(raw))), 32)
	}
	return appendNumber(dst, math.Float64frombits(le.Uint64(raw)), 64)
}
