package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"
)

// span is where the header says that a tensor lies, in bytes of the data.
type span struct{ begin, end int64 }

// parseHeader reads the JSON header. It returns the tensors in the order of
// their data, which covers dataBytes exactly.
func parseHeader(header []byte, dataBytes int64) ([]Tensor, map[string]string, error) {
	if len(header) == 0 || header[0] != '{' {
		return nil, nil, errors.New("the header does not start with {")
	}
	if !utf8.Valid(header) {
		return nil, nil, errors.New("the header is not UTF-8")
	}
	d := headerDecoder{json.NewDecoder(bytes.NewReader(header))}
	d.UseNumber()
	var (
		tensors  []Tensor
		spans    []span
		metadata map[string]string
	)
	err := d.object(func(key string) (err error) {
		if key == metadataKey {
			metadata, err = d.stringMap()
			return err
		}
		t, s, err := d.tensor(key)
		tensors, spans = append(tensors, t), append(spans, s)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, nil, errors.New("the header continues after its object")
	}
	return place(tensors, spans, metadata, dataBytes)
}

// place checks the spans against the shapes and against each other and puts the
// tensors in the order of their data.
func place(tensors []Tensor, spans []span, metadata map[string]string, dataBytes int64) ([]Tensor, map[string]string, error) {
	order := make([]int, len(tensors))
	for i := range tensors {
		order[i] = i
		size, err := tensors[i].size()
		if err != nil {
			return nil, nil, err
		}
		if s := spans[i]; s.begin < 0 || s.end < s.begin || s.end-s.begin != size {
			return nil, nil, fmt.Errorf("tensor %q of %d bytes has data_offsets [%d, %d]", tensors[i].Name, size, s.begin, s.end)
		}
		tensors[i].offset = spans[i].begin
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if spans[a].begin != spans[b].begin {
			if spans[a].begin < spans[b].begin {
				return -1
			}
			return 1
		}
		if spans[a].end < spans[b].end {
			return -1
		} else if spans[a].end > spans[b].end {
			return 1
		}
		return 0
	})
	sorted, at := make([]Tensor, len(tensors)), int64(0)
	for i, k := range order {
		if spans[k].begin != at {
			return nil, nil, fmt.Errorf("tensor %q starts at byte %d of the data, want %d: tensors leave no holes and do not overlap",
				tensors[k].Name, spans[k].begin, at)
		}
		sorted[i], at = tensors[k], spans[k].end
	}
	if at != dataBytes {
		return nil, nil, fmt.Errorf("the tensors have %d bytes, the file has %d bytes of data", at, dataBytes)
	}
	return sorted, metadata, nil
}

// headerDecoder walks the tokens of a header. Unlike decoding into maps it sees
// keys that are given twice, and it keeps nothing that the format does not know.
type headerDecoder struct{ *json.Decoder }

// object calls member for each key of the object that comes next; member reads
// the value.
func (d headerDecoder) object(member func(key string) error) error {
	if err := d.delim('{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	for d.More() {
		key, err := d.text()
		if err != nil {
			return err
		}
		if seen[key] {
			return fmt.Errorf("the key %q is given twice in the header", key)
		}
		seen[key] = true
		if err := member(key); err != nil {
			return err
		}
	}
	return d.delim('}')
}

// tensor reads the entry of a tensor, which must have dtype, shape and data_offsets and nothing
// else. Whether these agree is checked when all tensors are known.
func (d headerDecoder) tensor(name string) (Tensor, span, error) {
	t, s, fields := Tensor{Name: name}, span{}, 0
	err := d.object(func(key string) error {
		fields++
		switch key {
		case "dtype":
			text, err := d.text()
			if err != nil {
				return err
			}
			t.DType, err = parseDType(text)
			return err
		case "shape":
			shape, err := d.integers()
			t.Shape = shape
			return err
		case "data_offsets":
			at, err := d.integers()
			if err == nil && len(at) != 2 {
				err = fmt.Errorf("%d data_offsets, want 2", len(at))
			}
			if err == nil {
				s = span{at[0], at[1]}
			}
			return err
		}
		return fmt.Errorf("unknown key %q", key)
	})
	if err == nil && fields != 3 {
		err = errors.New("dtype, shape or data_offsets is missing")
	}
	if err != nil {
		err = fmt.Errorf("tensor %q: %w", name, err)
	}
	return t, s, err
}

func (d headerDecoder) stringMap() (map[string]string, error) {
	m := map[string]string{}
	err := d.object(func(key string) (err error) {
		m[key], err = d.text()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", metadataKey, err)
	}
	return m, nil
}

// integers reads a list of whole numbers of 64 bits; floats are refused, as they could lose
// digits.
func (d headerDecoder) integers() ([]int64, error) {
	if err := d.delim('['); err != nil {
		return nil, err
	}
	var list []int64
	for d.More() {
		tok, err := d.Token()
		if err != nil {
			return nil, err
		}
		number, ok := tok.(json.Number)
		if !ok {
			return nil, fmt.Errorf("%v where an integer should be", tok)
		}
		v, err := strconv.ParseInt(number.String(), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s is not an integer of 64 bits", number)
		}
		list = append(list, v)
	}
	return list, d.delim(']')
}

func (d headerDecoder) text() (string, error) {
	tok, err := d.Token()
	if err != nil {
		return "", err
	}
	s, ok := tok.(string)
	if !ok {
		return "", fmt.Errorf("%v where a string should be", tok)
	}
	return s, nil
}

func (d headerDecoder) delim(want json.Delim) error {
	tok, err := d.Token()
	if err != nil {
		return err
	}
	if tok != want {
		return fmt.Errorf("%v where %v should be", tok, want)
	}
	return nil
}

// formatHeader returns the start of a file up to its data. Equal arguments give
// equal bytes.
func formatHeader(metadata map[string]string, tensors []Tensor) ([]byte, error) {
	var b bytes.Buffer
	b.Write(make([]byte, prefixBytes))
	b.WriteByte('{')
	if metadata != nil {
		b.WriteString(`"` + metadataKey + `":{`)
		for i, key := range slices.Sorted(maps.Keys(metadata)) {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeStrings(&b, key, metadata[key]); err != nil {
				return nil, err
			}
		}
		b.WriteByte('}')
	}
	at, seen := int64(0), map[string]bool{metadataKey: true}
	for i := range tensors {
		t := &tensors[i]
		if seen[t.Name] {
			return nil, fmt.Errorf("%w: two tensors have the name %q, or it is reserved", ErrUse, t.Name)
		}
		seen[t.Name] = true
		size, err := t.size()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUse, err)
		}
		if b.Len() > prefixBytes+1 {
			b.WriteByte(',')
		}
		if err := writeStrings(&b, t.Name); err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, `:{"dtype":"%s","shape":[`, t.DType)
		for k, n := range t.Shape {
			if k > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "%d", n)
		}
		end := at + size
		if end < at {
			return nil, fmt.Errorf("%w: the tensors up to %q are too large for one file", ErrUse, t.Name)
		}
		fmt.Fprintf(&b, `],"data_offsets":[%d,%d]}`, at, end)
		at = end
	}
	b.WriteByte('}')
	for b.Len()%Alignment != 0 {
		b.WriteByte(' ')
	}
	n := b.Len() - prefixBytes
	if n > MaxHeaderBytes {
		return nil, fmt.Errorf("%w: the header has %d bytes, at most %d are allowed; move metadata into tensors", ErrUse, n, MaxHeaderBytes)
	}
	binary.LittleEndian.PutUint64(b.Bytes(), uint64(n))
	return b.Bytes(), nil
}

// writeStrings writes JSON strings with colons between them.
func writeStrings(b *bytes.Buffer, list ...string) error {
	for i, s := range list {
		if !utf8.ValidString(s) {
			return fmt.Errorf("%w: %q is not UTF-8", ErrUse, s)
		}
		if i > 0 {
			b.WriteByte(':')
		}
		quoted, err := json.Marshal(s)
		if err != nil {
			return fmt.Errorf("%w: %q: %w", ErrUse, s, err)
		}
		b.Write(quoted)
	}
	return nil
}
