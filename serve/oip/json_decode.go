package oip

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// DecodeJSON decodes a request of REST. The first header bytes of body are JSON, the
// rest are the contents of binary tensors in the order of the inputs; header is
// len(body) where there are none. depth is how deeply arrays and objects may be
// nested. Inputs share memory with body; what else they take is reserved first.
func DecodeJSON(body []byte, header, depth int, reserve Reserve) (*Request, error) {
	if header < 0 || header > len(body) {
		return nil, fmt.Errorf("%w: the header says that %d bytes are JSON; the body has %d", ErrMessage, header, len(body))
	}
	d := requestDecoder{scanner: scanner{text: body[:header], depth: depth}, binary: body[header:], reserve: reserve}
	if err := d.request(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return &d.req, nil
}

// DecodeIndexJSON decodes a request of REST for the list of models, of objects nested so deeply: whether it is
// for those that are ready alone. Blanks and an empty object are a request for all.
func DecodeIndexJSON(body []byte, depth int) (ready bool, err error) {
	s := scanner{text: body, depth: depth}
	if s.peek(); s.pos == len(body) {
		return false, nil
	}
	var given givenKeys
	err = s.object(func(key string) error {
		if err := given.add(key); err != nil {
			return err
		}
		if key != "ready" {
			return s.skip()
		}
		word, err := s.word()
		if err == nil && word != "true" && word != "false" {
			err = fmt.Errorf("ready: %s; want true or false", word)
		}
		ready = word == "true"
		return err
	})
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return ready, nil
}

// DecodeControlJSON decodes a request of REST to load or unload a model, of objects nested so deeply. Blanks are one without parameters.
func DecodeControlJSON(body []byte, depth int) error {
	s := scanner{text: body, depth: depth}
	if s.peek(); s.pos == len(body) {
		return nil
	}
	var given givenKeys
	err := s.object(func(key string) error {
		if err := given.add(key); err != nil {
			return err
		}
		if key != "parameters" {
			return s.skip()
		}
		return s.object(func(key string) error {
			if err := controlParam(key); err != nil {
				return err
			}
			return s.skip()
		})
	})
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return nil
}

// requestDecoder fills a request from JSON.
type requestDecoder struct {
	scanner
	binary  []byte // contents that no tensor has taken
	reserve Reserve
	req     Request
	lengths [MaxDims]int // what data uses
}

// givenKeys are the keys that an object has had so far, of those that a request means something by. Of
// two values for one key a reader would have to choose, and other readers choose otherwise.
type givenKeys uint

// add notes a key, and is an error if the object has had it.
func (g *givenKeys) add(key string) error {
	for i, known := range [...]string{"id", "parameters", "inputs", "outputs", "name", "datatype", "shape", "data", "ready"} {
		if key != known {
			continue
		}
		if *g&(1<<i) != 0 {
			return fmt.Errorf("%s: given twice", key)
		}
		*g |= 1 << i
	}
	return nil
}

func (d *requestDecoder) request() error {
	var given givenKeys
	err := d.object(func(key string) error {
		if err := given.add(key); err != nil {
			return err
		}
		switch key {
		case "id":
			return d.text(&d.req.ID, "id")
		case "parameters":
			return d.params(&d.req.Params, "parameters")
		case "inputs":
			return d.array(func(i int) error {
				if i == MaxTensors {
					return fmt.Errorf("inputs: more than %d", MaxTensors)
				}
				d.req.Inputs = append(d.req.Inputs, Tensor{})
				return d.input(i)
			})
		case "outputs":
			return d.array(func(i int) error {
				if i == MaxTensors {
					return fmt.Errorf("outputs: more than %d", MaxTensors)
				}
				d.req.Outputs = append(d.req.Outputs, Output{})
				return d.output(i)
			})
		}
		return d.skip()
	})
	if err != nil {
		return err
	}
	if err := d.end(); err != nil {
		return err
	}
	if len(d.binary) > 0 {
		return fmt.Errorf("%d bytes follow the last binary tensor", len(d.binary))
	}
	return nil
}

// label names an input for an error.
func label(list string, i int, name string) string {
	if name == "" {
		return fmt.Sprintf("%s[%d]", list, i)
	}
	return fmt.Sprintf("%s[%d] %q", list, i, clip(name))
}

func (d *requestDecoder) input(i int) error {
	in, data := &d.req.Inputs[i], -1 // where data begins, if it came before the datatype
	filled := false
	var given givenKeys
	err := d.object(func(key string) error {
		if err := given.add(key); err != nil {
			return err
		}
		switch key {
		case "name":
			return d.text(&in.Name, "name")
		case "datatype":
			return d.text((*string)(&in.Datatype), "datatype")
		case "shape":
			in.Shape = make([]int64, 0, 4)
			err := d.array(func(k int) error {
				if k == MaxDims {
					return fmt.Errorf("shape: more than %d dimensions", MaxDims)
				}
				n, err := d.number()
				if err != nil {
					return fmt.Errorf("shape: %w", err)
				}
				x, err := strconv.ParseInt(string(n), 10, 64)
				if err != nil {
					return fmt.Errorf("shape: dimension %s; want an integer", clip(string(n)))
				}
				in.Shape = append(in.Shape, x)
				return nil
			})
			return err
		case "parameters":
			return d.params(&in.Params, "parameters")
		case "data":
			if in.Datatype == "" || in.Shape == nil { // both are needed to read it
				d.peek()
				data = d.pos
				return d.skip()
			}
			filled = true
			return d.data(in)
		}
		return d.skip()
	})
	if err == nil && data >= 0 {
		end, depth := d.pos, d.depth
		d.pos, d.depth = data, d.depth-1 // inside the tensor's object
		filled, err = true, d.data(in)
		d.pos, d.depth = end, depth
	}
	if err == nil {
		err = d.contents(in, filled)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", label("inputs", i, in.Name), err)
	}
	return nil
}

// contents takes the binary contents of a tensor where it has some, and checks what
// it has.
func (d *requestDecoder) contents(in *Tensor, filled bool) error {
	if in.Name == "" {
		return fmt.Errorf("name: missing")
	}
	if in.Shape == nil {
		return fmt.Errorf("shape: missing")
	}
	size, binary := in.Params["binary_data_size"]
	switch {
	case binary && filled:
		return fmt.Errorf("data: given beside the parameter binary_data_size; give one of them")
	case binary:
		n, ok := size.(int64)
		if !ok || n < 0 || n > int64(len(d.binary)) {
			return fmt.Errorf("parameters: binary_data_size is %s; %d bytes are left in the body", clip(fmt.Sprint(size)), len(d.binary))
		}
		in.Raw, d.binary = d.binary[:n:n], d.binary[n:]
	case !filled:
		return fmt.Errorf("data: missing")
	}
	return in.check()
}

func (d *requestDecoder) output(i int) error {
	out := &d.req.Outputs[i]
	var given givenKeys
	err := d.object(func(key string) error {
		if err := given.add(key); err != nil {
			return err
		}
		switch key {
		case "name":
			return d.text(&out.Name, "name")
		case "parameters":
			return d.params(&out.Params, "parameters")
		}
		return d.skip()
	})
	if err == nil && out.Name == "" {
		err = fmt.Errorf("name: missing")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", label("outputs", i, out.Name), err)
	}
	return nil
}

// text reads a field that is a short string.
func (d *requestDecoder) text(to *string, field string) error {
	if d.peek() != '"' {
		return fmt.Errorf("%s: %w", field, d.fail("want a string, found %s", d.found()))
	}
	s, err := d.str()
	if err == nil && len(s) > MaxName {
		err = fmt.Errorf("longer than %d bytes", MaxName)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	*to = s
	return nil
}

func (d *requestDecoder) params(to *Params, field string) error {
	err := d.object(func(key string) error {
		if *to == nil {
			*to = Params{}
		}
		if len(*to) == MaxParams || len(key) > MaxName {
			return fmt.Errorf("more than %d, or a name of more than %d bytes", MaxParams, MaxName)
		}
		if _, ok := (*to)[key]; ok {
			return fmt.Errorf("%s: given twice", clip(key))
		}
		var x any
		var err error
		switch c := d.peek(); {
		case c == '"':
			x, err = d.str()
		case c == 't' || c == 'f':
			var w string
			w, err = d.word()
			x = w == "true"
		case c == '-' || c-'0' <= 9:
			x, err = d.param()
		default:
			err = d.fail("want a string, a number, true or false, found %s", d.found())
		}
		if err != nil {
			return fmt.Errorf("%s: %w", clip(key), err)
		}
		(*to)[key] = x
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}

// param reads a number: an int64, a uint64 above it, else a float64.
func (d *requestDecoder) param() (any, error) {
	n, err := d.number()
	if err != nil {
		return nil, err
	}
	if x, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return x, nil
	}
	if x, err := strconv.ParseUint(string(n), 10, 64); err == nil {
		return x, nil
	}
	x, err := strconv.ParseFloat(string(n), 64)
	if err != nil {
		return nil, fmt.Errorf("%s is not a number that fits 64 bits", clip(string(n)))
	}
	return x, nil
}

// data reads the contents of a tensor, a flat list or lists in lists as the shape
// says.
func (d *requestDecoder) data(in *Tensor) error {
	size := in.Datatype.Size()
	if size < 0 {
		return in.check() // says what is wrong
	}
	if want, err := elements(in.Shape); err != nil {
		return err
	} else if size > 0 {
		// An element takes two bytes of text at least, so the shape alone cannot ask
		// for more memory than the body paid for.
		bytes := min(want, int64(len(d.scanner.text)-d.pos)/2+1) * int64(size)
		if err := d.reserve.take(bytes); err != nil {
			return err
		}
		in.Raw = make([]byte, 0, bytes)
	} else { // a text takes three bytes more in JSON at least, four more here
		rest := int64(len(d.scanner.text) - d.pos)
		if err := d.reserve.take(rest + 4*min(want, rest/3+1)); err != nil {
			return err
		}
	}
	lengths := d.lengths[:0] // of the lists at each depth; -1: not known yet
	fast := newPlain(in.Datatype)
	elems, deep := 0, -1 // the depth of elements; -1: none has come yet
	var list func(level int) error
	list = func(level int) error {
		if level == MaxDims {
			return fmt.Errorf("data: nested more deeply than %d dimensions", MaxDims)
		}
		if level == len(lengths) {
			lengths = append(lengths, -1)
		}
		n, kind := 0, byte(0) // of members: lists or elements
		err := d.array(func(i int) error {
			c := d.peek()
			if c != '[' {
				c = 'e'
			}
			if n++; kind != 0 && kind != c {
				return fmt.Errorf("data: lists and elements are mixed")
			}
			if kind = c; c == '[' {
				return list(level + 1)
			}
			switch {
			case deep < 0:
				deep = level
			case level < deep:
				return fmt.Errorf("data: element %d is less deep than those before", elems)
			case level > deep:
				return fmt.Errorf("data: element %d is deeper than those before", elems)
			}
			raw, more := d.plain(in.Raw, fast)
			in.Raw, elems, n = raw, elems+more, n+more
			elems++
			if size > 0 && cap(in.Raw)-len(in.Raw) < size {
				return fmt.Errorf("data: more elements than shape %v wants", in.Shape)
			}
			var err error
			if in.Raw, err = d.element(in.Raw, in.Datatype); err != nil {
				return fmt.Errorf("data: element %d: %w", elems-1, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if lengths[level] >= 0 && lengths[level] != n {
			return fmt.Errorf("data: lists of %d and %d members side by side", lengths[level], n)
		}
		lengths[level] = n
		return nil
	}
	if err := list(0); err != nil {
		return err
	}
	if len(lengths) == 1 {
		return nil // check compares the number of elements
	}
	if len(lengths) != len(in.Shape) {
		return fmt.Errorf("data: nested %d deep; shape %v wants %d, or a flat list", len(lengths), in.Shape, len(in.Shape))
	}
	for i, n := range lengths {
		if int64(n) != in.Shape[i] {
			return fmt.Errorf("data: lists of %d members where shape %v wants %d", n, in.Shape, in.Shape[i])
		}
	}
	return nil
}

// element reads one element.
func (d *requestDecoder) element(raw []byte, t Datatype) ([]byte, error) {
	c := d.peek()
	float := t == FP64 || t == FP32 || t == FP16 || t == BF16
	switch {
	case t == Bytes:
		if c != '"' {
			return raw, d.fail("want a string, found %s", d.found())
		}
		s, err := d.str()
		if err != nil {
			return raw, err
		}
		return AppendText(raw, s), nil
	case t == Bool && (c == 't' || c == 'f'):
		w, err := d.word()
		b := byte(0)
		if w == "true" {
			b = 1
		}
		return append(raw, b), err
	case float && c == 'n':
		if _, err := d.word(); err != nil {
			return raw, err
		}
		return AppendFloat(raw, t, math.NaN())
	case float && c == '"':
		s, err := d.str()
		if err != nil {
			return raw, err
		}
		x, ok := map[string]float64{"NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1)}[s]
		if !ok {
			return raw, fmt.Errorf("%q is not a number", clip(s))
		}
		return AppendFloat(raw, t, x)
	}
	n, err := d.number()
	if err != nil {
		return raw, err
	}
	if x, ok := small(n); ok && float {
		return AppendFloat(raw, t, float64(x))
	} else if ok {
		return appendInt(raw, t, x, n)
	}
	if !float && t != Bool {
		return appendInteger(raw, t, n)
	}
	width := 64
	if t == FP32 {
		width = 32 // from the text, as rounding to float64 on the way would be to round twice
	}
	x, err := strconv.ParseFloat(string(n), width)
	if err != nil {
		return raw, fmt.Errorf("%s is beyond the range of %s", clip(string(n)), t)
	}
	return AppendFloat(raw, t, x)
}

// small reads an integer of up to 15 digits, without allocating.
func small(n []byte) (int64, bool) {
	digits := n
	if len(n) > 0 && n[0] == '-' {
		digits = n[1:]
	}
	if len(digits) == 0 || len(digits) > 15 || len(digits) < len(n) && digits[0] == '0' { // -0 is not an integer
		return 0, false
	}
	x := int64(0)
	for _, c := range digits {
		if c-'0' > 9 {
			return 0, false
		}
		x = 10*x + int64(c-'0')
	}
	if len(digits) < len(n) {
		x = -x
	}
	return x, true
}

func appendInt(raw []byte, t Datatype, x int64, n []byte) ([]byte, error) {
	lo, hi := t.bounds()
	if t == Bool {
		lo, hi = 0, 1
	}
	if float64(x) < lo || float64(x) > hi {
		return raw, fmt.Errorf("%s is beyond the range of %s", n, t)
	}
	return appendWord(raw, t, uint64(x)), nil
}

// appendInteger appends a number that small does not read, with all its digits.
func appendInteger(raw []byte, t Datatype, n []byte) ([]byte, error) {
	if digits, ok := integer(string(n)); ok {
		if lo, _ := t.bounds(); lo == 0 {
			if x, err := strconv.ParseUint(digits, 10, 8*t.Size()); err == nil {
				return appendWord(raw, t, x), nil
			}
		} else if x, err := strconv.ParseInt(digits, 10, 8*t.Size()); err == nil {
			return appendWord(raw, t, uint64(x)), nil
		}
	}
	return raw, fmt.Errorf("%s is not an integer of %s", clip(string(n)), t)
}

// integer writes a number of JSON without point and exponent. false means that it has a fraction, or more digits than
// any integer of a datatype.
func integer(n string) (string, bool) {
	const most = 20 // digits
	mantissa, exponent := n, "0"
	if i := strings.IndexAny(n, "eE"); i >= 0 {
		mantissa, exponent = n[:i], n[i+1:]
	}
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.Trim(whole+fraction, "0")
	if digits == "" {
		return "0", true
	}
	power, err := strconv.Atoi(exponent)
	trailing := len(whole+fraction) - len(strings.TrimRight(whole+fraction, "0"))
	zeros := power - len(fraction) + trailing
	if err != nil || zeros < 0 || zeros > most || len(digits)+zeros > most {
		return "", false
	}
	if digits += strings.Repeat("0", zeros); negative {
		digits = "-" + digits
	}
	return digits, true
}
