package oip

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// DecodeProto decodes a ModelInferRequest of gRPC. Raw contents share memory with
// message; what else inputs take is reserved first.
func DecodeProto(message []byte, reserve Reserve) (*Request, error) {
	r := new(Request)
	if err := r.decodeProto(message, reserve); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return r, nil
}

// ModelOf returns the model that a ModelInferRequest names first, without decoding the
// rest, or "". Errors are left for DecodeProto to find.
func ModelOf(message []byte) string {
	name, found := "", errors.New("found")
	fields(message, func(f field) error {
		if f.number != 1 || f.text(&name, "model_name") != nil {
			return nil
		}
		return found // ends the walk
	})
	return name
}

func (r *Request) decodeProto(message []byte, reserve Reserve) error {
	var raw [][]byte
	var contents [][]byte // of each input, messages of typed elements
	err := fields(message, func(f field) error {
		switch f.number {
		case 1:
			return f.text(&r.Model, "model_name")
		case 2:
			return f.text(&r.Version, "model_version")
		case 3:
			return f.text(&r.ID, "id")
		case 4:
			return f.param(&r.Params)
		case 5:
			if len(r.Inputs) == MaxTensors {
				return fmt.Errorf("inputs: more than %d", MaxTensors)
			}
			var t Tensor
			typed, err := t.decodeProto(f, reserve)
			if err != nil {
				return fmt.Errorf("%s: %w", label("inputs", len(r.Inputs), t.Name), err)
			}
			r.Inputs, contents = append(r.Inputs, t), append(contents, typed)
		case 6:
			if len(r.Outputs) == MaxTensors {
				return fmt.Errorf("outputs: more than %d", MaxTensors)
			}
			var o Output
			err := f.message(func(g field) error {
				switch g.number {
				case 1:
					return g.text(&o.Name, "name")
				case 2:
					return g.param(&o.Params)
				}
				return nil
			})
			if err == nil && o.Name == "" {
				err = fmt.Errorf("name: missing")
			}
			if err != nil {
				return fmt.Errorf("%s: %w", label("outputs", len(r.Outputs), o.Name), err)
			}
			r.Outputs = append(r.Outputs, o)
		case 7:
			if len(raw) == MaxTensors {
				return fmt.Errorf("raw_input_contents: more than %d", MaxTensors)
			}
			if err := f.want(bytesWire); err != nil {
				return fmt.Errorf("raw_input_contents: %w", err)
			}
			raw = append(raw, f.bytes)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(raw) > 0 && len(raw) != len(r.Inputs) {
		return fmt.Errorf("raw_input_contents: %d for %d inputs; give one for each input, in their order", len(raw), len(r.Inputs))
	}
	for i := range r.Inputs {
		t, err := &r.Inputs[i], error(nil)
		switch {
		case t.Name == "":
			err = fmt.Errorf("name: missing")
		case len(raw) > 0 && len(contents[i]) > 0:
			err = fmt.Errorf("contents: given beside raw_input_contents; give one of them")
		case len(raw) > 0:
			t.Raw = raw[i]
		default:
			err = t.fill(contents[i], reserve)
		}
		if err == nil {
			err = t.check()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", label("inputs", i, t.Name), err)
		}
	}
	return nil
}

// message calls f for the fields of a field that is a message.
func (f field) message(take func(field) error) error {
	if err := f.want(bytesWire); err != nil {
		return err
	}
	return fields(f.bytes, take)
}

// param adds an entry of a map of parameters.
func (f field) param(to *Params) error {
	key := ""
	var value any
	err := f.message(func(g field) error {
		switch g.number {
		case 1:
			return g.text(&key, "name")
		case 2:
			return g.message(func(v field) error {
				switch v.number {
				case 1:
					value = v.word != 0
				case 2:
					value = int64(v.word)
				case 3:
					value = string(v.bytes)
				case 4:
					value = math.Float64frombits(v.word)
				case 5:
					value = v.word
				default:
					return nil
				}
				return v.want([]int{0, varintWire, varintWire, bytesWire, eightWire, varintWire}[v.number])
			})
		}
		return nil
	})
	if err == nil && value == nil {
		err = fmt.Errorf("no value")
	}
	if *to == nil {
		*to = Params{}
	}
	if err == nil && len(*to) == MaxParams {
		err = fmt.Errorf("more than %d", MaxParams)
	}
	if err != nil {
		return fmt.Errorf("parameters: %s: %w", clip(key), err)
	}
	(*to)[key] = value
	return nil
}

// decodeProto reads an input tensor but for its typed contents, which it returns: one
// message, or those of several, which mean the same one after another.
func (t *Tensor) decodeProto(f field, reserve Reserve) (contents []byte, err error) {
	err = f.message(func(g field) error {
		switch g.number {
		case 1:
			return g.text(&t.Name, "name")
		case 2:
			return g.text((*string)(&t.Datatype), "datatype")
		case 3:
			return g.integers(func(x uint64) error {
				if len(t.Shape) == MaxDims {
					return fmt.Errorf("shape: more than %d dimensions", MaxDims)
				}
				t.Shape = append(t.Shape, int64(x))
				return nil
			})
		case 4:
			return g.param(&t.Params)
		case 5:
			if err := g.want(bytesWire); err != nil || len(contents) == 0 {
				contents = g.bytes
				return err
			}
			if err := reserve.take(int64(len(f.bytes))); err != nil { // what all of them may take
				return err
			}
			reserve = nil
			contents = append(contents, g.bytes...)
		}
		return nil
	})
	return contents, err
}

// contentsOf is the field of InferTensorContents that holds a datatype.
func contentsOf(d Datatype) (number int, name string) {
	switch d {
	case Bool:
		return 1, "bool_contents"
	case Int8, Int16, Int32:
		return 2, "int_contents"
	case Int64:
		return 3, "int64_contents"
	case Uint8, Uint16, Uint32:
		return 4, "uint_contents"
	case Uint64:
		return 5, "uint64_contents"
	case FP32:
		return 6, "fp32_contents"
	case FP64:
		return 7, "fp64_contents"
	case Bytes:
		return 8, "bytes_contents"
	}
	return 0, "raw_input_contents"
}

// fill turns typed contents into bytes.
func (t *Tensor) fill(contents []byte, reserve Reserve) error {
	number, name := contentsOf(t.Datatype)
	shared := t.Datatype == FP32 || t.Datatype == FP64 // packed elements stay where they are
	if want, err := elements(t.Shape); err != nil {
		return err
	} else if size := t.Datatype.Size(); size > 0 && !shared && len(contents) > 0 {
		// An element takes a byte at least, so the shape alone cannot ask for memory.
		bytes := min(want, int64(len(contents))) * int64(size)
		if err := reserve.take(bytes); err != nil {
			return err
		}
		t.Raw = make([]byte, 0, bytes)
	} else if bytes := int64(len(contents)); bytes > 0 {
		bytes += 2 * min(want, bytes/2) // a text takes two bytes more there at least, four more here
		if err := reserve.take(bytes); err != nil {
			return err
		}
		if size == 0 {
			t.Raw = make([]byte, 0, bytes)
		}
	}
	return fields(contents, func(c field) error {
		if c.number != number {
			return fmt.Errorf("contents: field %d is set; a tensor of %s has its contents in %s", c.number, clip(string(t.Datatype)), name)
		}
		var err error
		switch {
		case shared:
			err = t.numbers(c, name)
		case t.Datatype == Bytes:
			if err = c.want(bytesWire); err == nil {
				t.Raw = append(binary.LittleEndian.AppendUint32(t.Raw, uint32(len(c.bytes))), c.bytes...)
			}
		default:
			at := 0
			err = c.integers(func(x uint64) error {
				if !t.Datatype.holds(x) {
					return fmt.Errorf("%s: element %d is beyond the range of %s", name, at, t.Datatype)
				}
				if cap(t.Raw)-len(t.Raw) < t.Datatype.Size() {
					return fmt.Errorf("%s: more elements than shape %v wants", name, t.Shape)
				}
				at++
				t.Raw = appendWord(t.Raw, t.Datatype, x)
				return nil
			})
		}
		if err != nil {
			return fmt.Errorf("contents: %w", err)
		}
		return nil
	})
}

// numbers reads one field of FP32 or FP64 contents.
func (t *Tensor) numbers(c field, name string) error {
	size := t.Datatype.Size()
	switch {
	case c.wire == fourWire && size == 4:
		t.Raw = binary.LittleEndian.AppendUint32(t.Raw, uint32(c.word))
	case c.wire == eightWire && size == 8:
		t.Raw = binary.LittleEndian.AppendUint64(t.Raw, c.word)
	case c.wire != bytesWire || len(c.bytes)%size != 0:
		return fmt.Errorf("%s: %d bytes are not whole numbers", name, len(c.bytes))
	case t.Raw == nil:
		t.Raw = c.bytes
	default:
		t.Raw = append(t.Raw, c.bytes...)
	}
	return nil
}

// holds reports whether an integer of the wire, negative ones as 64 bits, is one of
// the datatype.
func (d Datatype) holds(x uint64) bool {
	switch bits := 8 * d.Size(); d {
	case Bool:
		return x <= 1
	case Int8, Int16, Int32:
		return int64(x)>>(bits-1) == 0 || int64(x)>>(bits-1) == -1
	case Uint8, Uint16, Uint32:
		return x>>bits == 0
	}
	return true
}

// ModelRef is a request that names a model alone: ModelReady, ModelMetadata and
// ModelStatistics.
type ModelRef struct{ Name, Version string }

// DecodeModelRef decodes one.
func DecodeModelRef(message []byte) (ModelRef, error) {
	var r ModelRef
	return r, decode(message, func(f field) error {
		switch f.number {
		case 1:
			return f.text(&r.Name, "name")
		case 2:
			return f.text(&r.Version, "version")
		}
		return nil
	})
}

// RepositoryRef is a request of the model repository extension.
type RepositoryRef struct {
	Repository string
	Model      string // not in RepositoryIndex
	Ready      bool   // RepositoryIndex: list models that are ready alone
}

// DecodeRepositoryRef decodes RepositoryModelLoad or RepositoryModelUnload.
func DecodeRepositoryRef(message []byte) (RepositoryRef, error) {
	var r RepositoryRef
	return r, decode(message, func(f field) error {
		switch f.number {
		case 1:
			return f.text(&r.Repository, "repository_name")
		case 2:
			return f.text(&r.Model, "model_name")
		case 3:
			key := ""
			err := f.message(func(g field) error {
				if g.number == 1 {
					return g.text(&key, "name")
				}
				return nil
			})
			if err != nil {
				return fmt.Errorf("parameters: %w", err)
			}
			return controlParam(key)
		}
		return nil
	})
}

// controlParam refuses a parameter of a request to load or unload a model, which would be of no effect. Clients of Triton always say
// whether to unload what depends on the model: here none does.
func controlParam(key string) error {
	if key == "unload_dependents" {
		return nil
	}
	return fmt.Errorf("parameters: %q is not known; a model is loaded as its file is", clip(key))
}

// DecodeRepositoryIndex decodes RepositoryIndex.
func DecodeRepositoryIndex(message []byte) (RepositoryRef, error) {
	var r RepositoryRef
	return r, decode(message, func(f field) error {
		switch f.number {
		case 1:
			return f.text(&r.Repository, "repository_name")
		case 2:
			r.Ready = f.word != 0
			return f.want(varintWire)
		}
		return nil
	})
}

// DecodeHealth decodes the service of a grpc.health.v1 check.
func DecodeHealth(message []byte) (service string, err error) {
	return service, decode(message, func(f field) error {
		if f.number == 1 {
			return f.text(&service, "service")
		}
		return nil
	})
}

func decode(message []byte, take func(field) error) error {
	if err := fields(message, take); err != nil {
		return fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return nil
}
