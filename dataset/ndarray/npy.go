package ndarray

import (
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const maxHeaderBytes = 1 << 16

// OpenNPY reads the header of a .npy file, versions 1 to 3, and returns a reader of its rows.
// Arrays of structures, texts and objects are refused. Errors are parts of a line that begins
// with the path; they say how to write the file.
func OpenNPY(src io.Reader) (*Reader, error) {
	var start [8]byte
	if _, err := io.ReadFull(src, start[:]); err != nil || string(start[:6]) != "\x93NUMPY" {
		return nil, fmt.Errorf("does not begin like a .npy file; write it with numpy.save")
	}
	var size [4]byte
	n := 4
	switch start[6] {
	case 1:
		n = 2
	case 2, 3:
	default:
		return nil, fmt.Errorf("is a .npy file of version %d; versions 1 to 3 can be read", start[6])
	}
	if _, err := io.ReadFull(src, size[:n]); err != nil {
		return nil, fmt.Errorf("ends in its header; the file is cut short")
	}
	length := binary.LittleEndian.Uint32(size[:])
	if length > maxHeaderBytes {
		return nil, fmt.Errorf("has a header of %d bytes; it takes at most %d", length, maxHeaderBytes)
	}
	header := make([]byte, length)
	if _, err := io.ReadFull(src, header); err != nil {
		return nil, fmt.Errorf("ends in its header; the file is cut short")
	}
	p := headerParser{rest: string(header)}
	if err := p.parse(); err != nil {
		return nil, fmt.Errorf("has a header that cannot be read (%w); write it with numpy.save", err)
	}
	d, err := parseDescr(p.descr)
	if err != nil {
		return nil, err
	}
	return newReader(src, d, p.shape, p.fortran)
}

func parseDescr(s string) (DType, error) {
	bad := fmt.Errorf("has elements of type %q; convert to one of f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1", s)
	if len(s) != 3 || !strings.ContainsRune("<>|=", rune(s[0])) {
		return DType{}, bad
	}
	d := DType{Kind: s[1], Size: int(s[2] - '0'), BigEndian: s[0] == '>'}
	if d.element() == nil {
		return DType{}, bad
	}
	return d, nil
}

// headerParser reads the Python dictionary of a .npy header.
type headerParser struct {
	rest    string
	descr   string
	fortran bool
	shape   []int
}

// parse reads the header, a Python dictionary of the keys descr, fortran_order and shape, each
// once and in any order. Nothing is evaluated.
func (p *headerParser) parse() error {
	if !p.take("{") {
		return fmt.Errorf("it is not a dictionary")
	}
	seen := make(map[string]bool)
	for !p.take("}") {
		key, err := p.text()
		if err != nil {
			return err
		}
		if seen[key] {
			return fmt.Errorf("%q is given twice", key)
		}
		seen[key] = true
		if !p.take(":") {
			return fmt.Errorf("no colon after %q", key)
		}
		switch key {
		case "descr":
			p.descr, err = p.text()
		case "fortran_order":
			p.fortran = p.take("True")
			if !p.fortran && !p.take("False") {
				err = fmt.Errorf("fortran_order is neither True nor False")
			}
		case "shape":
			p.shape, err = p.tuple()
		default:
			err = fmt.Errorf("unknown key %q", key)
		}
		if err != nil {
			return err
		}
		if !p.take(",") && !strings.HasPrefix(p.rest, "}") {
			return fmt.Errorf("no comma after %q", key)
		}
	}
	if strings.TrimSpace(p.rest) != "" {
		return fmt.Errorf("text after the dictionary")
	}
	if len(seen) != 3 {
		return fmt.Errorf("it has %d of 3 keys", len(seen))
	}
	return nil
}

// take skips blanks, then a word if it is next, then blanks.
func (p *headerParser) take(word string) bool {
	rest, ok := strings.CutPrefix(strings.TrimLeft(p.rest, " \n\t"), word)
	if ok {
		p.rest = strings.TrimLeft(rest, " \n\t")
	}
	return ok
}

func (p *headerParser) text() (string, error) {
	for _, quote := range []string{"'", `"`} {
		if p.take(quote) {
			s, rest, ok := strings.Cut(p.rest, quote)
			if !ok || len(s) > 64 {
				return "", fmt.Errorf("a text without end")
			}
			p.rest = strings.TrimLeft(rest, " \n\t")
			return s, nil
		}
	}
	return "", fmt.Errorf("something other than text, such as the fields of a record")
}

// tuple reads a Python tuple of at most 32 whole numbers, as Python 2 and 3 write it. Whether
// the array fits the file is found by the reader.
func (p *headerParser) tuple() ([]int, error) {
	if !p.take("(") {
		return nil, fmt.Errorf("shape is not a tuple")
	}
	shape := []int{}
	for !p.take(")") {
		end := strings.IndexFunc(p.rest, func(r rune) bool { return r < '0' || r > '9' })
		if end <= 0 || len(shape) == 32 {
			return nil, fmt.Errorf("shape is not a list of up to 32 whole numbers")
		}
		n, err := strconv.Atoi(p.rest[:end])
		if err != nil {
			return nil, fmt.Errorf("shape has the number %s", p.rest[:end])
		}
		p.rest = p.rest[end:]
		p.take("L") // Python 2
		shape = append(shape, n)
		if !p.take(",") && !strings.HasPrefix(p.rest, ")") {
			return nil, fmt.Errorf("shape is not a list of up to 32 whole numbers")
		}
	}
	return shape, nil
}

// WriteNPYHeader writes the header of a .npy file, version 1, in C order; the
// elements, little-endian, are the caller's to write.
func WriteNPYHeader(w io.Writer, d DType, shape ...int) error {
	var dims strings.Builder
	for _, n := range shape {
		fmt.Fprintf(&dims, "%d, ", n)
	}
	order := "<"
	if d.Size == 1 {
		order = "|"
	}
	list := strings.TrimSuffix(dims.String(), " ")
	if len(shape) > 1 {
		list = strings.TrimSuffix(list, ",")
	}
	text := fmt.Sprintf("{'descr': '%s%v', 'fortran_order': False, 'shape': (%s), }", order, d, list)
	pad := 64 - (10+len(text)+1)%64
	text += strings.Repeat(" ", pad%64) + "\n"
	head := append([]byte("\x93NUMPY\x01\x00"), byte(len(text)), byte(len(text)>>8))
	_, err := w.Write(append(head, text...))
	return err
}
