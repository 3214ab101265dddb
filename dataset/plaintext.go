package dataset

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// sniffBytes is how much of a table in text is looked at before it is read: its
// encoding, its line ends and its delimiter are told from there.
const sniffBytes = 1 << 16

// openPlain opens a table in text as UTF-8. UTF-16 is told by its byte order
// mark or, without one, by the zero bytes of its digits and delimiters; other
// encodings with zero bytes are refused.
func openPlain(ctx context.Context, path string, opts *Options) (*bufio.Reader, io.Closer, error) {
	f, err := openFile(ctx, path, opts)
	if err != nil {
		return nil, nil, err
	}
	r := bufio.NewReaderSize(f, sniffBytes)
	start, err := r.Peek(sniffBytes)
	if len(start) == 0 && err != nil && err != io.EOF {
		f.Close()
		return nil, nil, badData(path, "%v; the file may be damaged", err)
	}
	bigEndian, wide, problem := encodingOf(start)
	switch {
	case problem != "":
		f.Close()
		return nil, nil, badData(path, "%s", problem)
	case wide:
		r = bufio.NewReaderSize(newUTF16(r, bigEndian), sniffBytes)
	}
	return r, f, nil
}

// encodingOf tells UTF-16 from UTF-8 by the first bytes of a file, or says why
// the file cannot be read as text.
func encodingOf(start []byte) (bigEndian, wide bool, problem string) {
	const convert = "convert it to UTF-8"
	switch {
	case bytes.HasPrefix(start, []byte("\xff\xfe\x00\x00")), bytes.HasPrefix(start, []byte("\x00\x00\xfe\xff")):
		return false, false, "is UTF-32; " + convert
	case bytes.HasPrefix(start, []byte("\xff\xfe")):
		return false, true, ""
	case bytes.HasPrefix(start, []byte("\xfe\xff")):
		return true, true, ""
	}
	var zeros [2]int // at even and at odd places
	for i, b := range start {
		if b == 0 {
			zeros[i%2]++
		}
	}
	enough := len(start)/8 + 1 // a quarter of the high bytes
	switch {
	case zeros == [2]int{}:
		return false, false, ""
	case zeros[0] == 0 && zeros[1] >= enough:
		return false, true, ""
	case zeros[1] == 0 && zeros[0] >= enough:
		return true, true, ""
	}
	return false, false, "holds zero bytes; if it is a table in text, " + convert
}

// errUTF16 is what a utf16Reader returns for bytes that are not UTF-16.
var errUTF16 = errors.New("the text is not valid UTF-16; convert it to UTF-8")

// utf16Reader turns UTF-16 into UTF-8. A byte order mark stays in the text, as
// the one of UTF-8.
type utf16Reader struct {
	r         *bufio.Reader
	bigEndian bool
	out       []byte // yet to be handed out
	err       error  // the first one, which stays
	room      [4]byte
}

func newUTF16(r io.Reader, bigEndian bool) *utf16Reader {
	return &utf16Reader{r: bufio.NewReader(r), bigEndian: bigEndian}
}

func (u *utf16Reader) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if len(u.out) == 0 {
			var c rune
			if u.err == nil {
				c, u.err = u.next()
			}
			if u.err != nil {
				return n, u.err
			}
			u.out = utf8.AppendRune(u.room[:0], c)
		}
		k := copy(p[n:], u.out)
		n, u.out = n+k, u.out[k:]
	}
	return n, nil
}

// next returns the next character, or io.EOF.
func (u *utf16Reader) next() (rune, error) {
	c, err := u.unit()
	if err != nil || !utf16.IsSurrogate(c) {
		return c, err
	}
	low, err := u.unit()
	if err == io.EOF {
		err = errUTF16
	}
	if err != nil {
		return 0, err
	}
	if c = utf16.DecodeRune(c, low); c == utf8.RuneError {
		return 0, errUTF16
	}
	return c, nil
}

// unit returns the next 16 bits, or io.EOF.
func (u *utf16Reader) unit() (rune, error) {
	a, err := u.r.ReadByte()
	if err != nil {
		return 0, err
	}
	b, err := u.r.ReadByte()
	if err == io.EOF {
		return 0, errUTF16
	}
	if u.bigEndian {
		a, b = b, a
	}
	return rune(b)<<8 | rune(a), err
}
