package oip

import (
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner reads JSON from the front to the back without building values of it.
type scanner struct {
	text  []byte
	pos   int
	depth int // arrays and objects that may still be opened
}

// fail returns an error at the present place.
func (s *scanner) fail(format string, args ...any) error {
	return fmt.Errorf("%s at byte %d of the JSON", fmt.Sprintf(format, args...), s.pos)
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for ; s.pos < len(s.text); s.pos++ {
		switch c := s.text[s.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

func (s *scanner) expect(c byte) error {
	if got := s.peek(); got != c || s.pos == len(s.text) {
		return s.fail("want %q, found %s", c, s.found())
	}
	s.pos++
	return nil
}

// found shows what is at the present place.
func (s *scanner) found() string {
	if s.pos >= len(s.text) {
		return "the end"
	}
	return strconv.Quote(clip(string(s.text[s.pos:min(len(s.text), s.pos+41)])))
}

func (s *scanner) open(c byte) error {
	if s.depth == 0 {
		return s.fail("arrays and objects nested too deeply")
	}
	s.depth--
	return s.expect(c)
}

// more reports whether a list continues after one of its members; it reads the comma
// or the end.
func (s *scanner) more(end byte) (bool, error) {
	switch s.peek() {
	case ',':
		s.pos++
		return true, nil
	case end:
		s.pos++
		s.depth++
		return false, nil
	}
	return false, s.fail("want %q or %q, found %s", ',', end, s.found())
}

// object calls member for each key, which must read the value.
func (s *scanner) object(member func(key string) error) error {
	if err := s.open('{'); err != nil {
		return err
	}
	if s.peek() == '}' {
		s.pos++
		s.depth++
		return nil
	}
	for {
		if s.peek() != '"' {
			return s.fail("want a key, found %s", s.found())
		}
		key, err := s.str()
		if err == nil {
			err = s.expect(':')
		}
		if err == nil {
			err = member(key)
		}
		if err != nil {
			return err
		}
		if again, err := s.more('}'); err != nil || !again {
			return err
		}
	}
}

// array calls element for each element, which must read it.
func (s *scanner) array(element func(i int) error) error {
	if err := s.open('['); err != nil {
		return err
	}
	if s.peek() == ']' {
		s.pos++
		s.depth++
		return nil
	}
	for i := 0; ; i++ {
		if err := element(i); err != nil {
			return err
		}
		if again, err := s.more(']'); err != nil || !again {
			return err
		}
	}
}

// str reads a string.
func (s *scanner) str() (string, error) {
	if err := s.expect('"'); err != nil {
		return "", err
	}
	from := s.pos
	for ; s.pos < len(s.text); s.pos++ {
		switch c := s.text[s.pos]; {
		case c == '"':
			s.pos++
			out := s.text[from : s.pos-1]
			if known := known(out); known != "" {
				return known, nil
			}
			if !utf8.Valid(out) {
				return "", s.fail("a string is not UTF-8")
			}
			return string(out), nil
		case c == '\\':
			return s.escaped(append([]byte(nil), s.text[from:s.pos]...))
		case c < ' ':
			return "", s.fail("a string holds the control character %#x", c)
		}
	}
	return "", s.fail("a string does not end")
}

// known returns a text that most requests have, without allocating it, or "".
func known(text []byte) string {
	switch string(text) {
	case "inputs":
		return "inputs"
	case "outputs":
		return "outputs"
	case "parameters":
		return "parameters"
	case "name":
		return "name"
	case "shape":
		return "shape"
	case "datatype":
		return "datatype"
	case "data":
		return "data"
	case "x":
		return "x"
	}
	for _, d := range Datatypes {
		if string(text) == string(d) {
			return string(d)
		}
	}
	return ""
}

// escaped reads the rest of a string from its first escape on; out is what came
// before.
func (s *scanner) escaped(out []byte) (string, error) {
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		s.pos++
		switch {
		case c == '"':
			if !utf8.Valid(out) {
				return "", s.fail("a string is not UTF-8")
			}
			return string(out), nil
		case c < ' ':
			return "", s.fail("a string holds the control character %#x", c)
		case c != '\\':
			out = append(out, c)
			continue
		}
		if s.pos == len(s.text) {
			break
		}
		c = s.text[s.pos]
		s.pos++
		switch c {
		case '"', '\\', '/':
			out = append(out, c)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, err := s.hex()
			if err != nil {
				return "", err
			}
			if utf16.IsSurrogate(r) {
				second := rune(utf8.RuneError)
				if s.pos+1 < len(s.text) && s.text[s.pos] == '\\' && s.text[s.pos+1] == 'u' {
					s.pos += 2
					if second, err = s.hex(); err != nil {
						return "", err
					}
				}
				if r = utf16.DecodeRune(r, second); r == utf8.RuneError {
					return "", s.fail("half of a surrogate pair")
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			return "", s.fail("the escape \\%c is not one of JSON", c)
		}
	}
	return "", s.fail("a string does not end")
}

func (s *scanner) hex() (rune, error) {
	if len(s.text)-s.pos < 4 {
		return 0, s.fail("a string does not end")
	}
	x, err := strconv.ParseUint(string(s.text[s.pos:s.pos+4]), 16, 16)
	if err != nil {
		return 0, s.fail("\\u%s is not an escape", s.text[s.pos:s.pos+4])
	}
	s.pos += 4
	return rune(x), nil
}

// number reads a number and returns its text.
func (s *scanner) number() ([]byte, error) {
	s.peek()
	from := s.pos
	digits := func() bool {
		at := s.pos
		for s.pos < len(s.text) && s.text[s.pos]-'0' <= 9 {
			s.pos++
		}
		return s.pos > at
	}
	next := func(set ...byte) bool {
		for _, c := range set {
			if s.pos < len(s.text) && s.text[s.pos] == c {
				s.pos++
				return true
			}
		}
		return false
	}
	next('-')
	zero := s.pos < len(s.text) && s.text[s.pos] == '0'
	start := s.pos
	ok := digits() && (!zero || s.pos == start+1)
	if ok && next('.') {
		ok = digits()
	}
	if ok && next('e', 'E') {
		next('+', '-')
		ok = digits()
	}
	if !ok {
		s.pos = from
		return nil, s.fail("want a number, found %s", s.found())
	}
	return s.text[from:s.pos], nil
}

// word reads true, false or null.
func (s *scanner) word() (string, error) {
	s.peek()
	for _, w := range []string{"true", "false", "null"} {
		if len(s.text)-s.pos >= len(w) && string(s.text[s.pos:s.pos+len(w)]) == w {
			s.pos += len(w)
			return w, nil
		}
	}
	return "", s.fail("want a value, found %s", s.found())
}

// skip reads a value of any kind and drops it.
func (s *scanner) skip() error {
	var err error
	switch c := s.peek(); {
	case c == '{':
		return s.object(func(string) error { return s.skip() })
	case c == '[':
		return s.array(func(int) error { return s.skip() })
	case c == '"':
		_, err = s.str()
	case c == '-' || c-'0' <= 9:
		_, err = s.number()
	default:
		_, err = s.word()
	}
	return err
}

// end wants nothing but blanks behind the value.
func (s *scanner) end() error {
	if s.peek(); s.pos < len(s.text) {
		return s.fail("nothing may follow the request, found %s", s.found())
	}
	return nil
}
