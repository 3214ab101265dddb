package xgboost

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// jsonSource reads JSON.
type jsonSource struct{ cursor }

// peek skips white space and returns the next byte, 0 at the end.
func (s *jsonSource) peek() byte {
	for s.at < len(s.b) {
		switch c := s.b[s.at]; c {
		case ' ', '\n', '\t', '\r':
			s.at++
		default:
			return c
		}
	}
	return 0
}

// want reads one byte.
func (s *jsonSource) want(c byte) error {
	if got := s.peek(); got != c {
		return s.unexpected(got, strconv.QuoteRune(rune(c)))
	}
	s.at++
	return nil
}

func (s *jsonSource) unexpected(got byte, want string) error {
	if s.at >= len(s.b) {
		return s.errorf("the file ends where %s should be; it is cut short", want)
	}
	return s.errorf("%q where %s should be", got, want)
}

// list reads elements between brackets, separated by commas.
func (s *jsonSource) list(open, end byte, item func() error) error {
	return nested(&s.depth, func() error {
		if err := s.want(open); err != nil {
			return err
		}
		if s.peek() == end {
			s.at++
			return nil
		}
		for {
			if err := item(); err != nil {
				return err
			}
			switch c := s.peek(); c {
			case ',':
				s.at++
			case end:
				s.at++
				return nil
			default:
				return s.unexpected(c, "a comma or the end of the list")
			}
		}
	})
}

func (s *jsonSource) object(field func(key string) error) error {
	return s.list('{', '}', func() error {
		key, err := s.string()
		if err != nil {
			return err
		}
		if err := s.want(':'); err != nil {
			return err
		}
		return field(key)
	})
}

func (s *jsonSource) array(item func() error) error { return s.list('[', ']', item) }

// numbers reads the elements itself, for nearly all of a file is numbers.
func (s *jsonSource) numbers(into []float64) ([]float64, error) {
	if err := s.want('['); err != nil {
		return nil, err
	}
	out := into[:0]
	dotted := false // whether the last number was a fraction
	for c := s.peek(); c != ']'; {
		x, n := usual(s.b[s.at:], &dotted)
		if s.at += n; n == 0 {
			var ok bool
			if x, ok = s.short(c); !ok {
				var err error
				if x, err = s.number(); err != nil {
					return nil, err
				}
			}
		}
		if len(out) == cap(out) { // few large steps: arrays are long
			out = append(make([]float64, 0, max(64, 2*len(out))), out...)
		}
		out = append(out, x)
		if c = s.peek(); c == ',' {
			s.at++
			c = 0 // a number has to follow
		} else if c != ']' {
			return nil, s.unexpected(c, "a comma or the end of the list")
		}
	}
	s.at++
	return out, nil
}

// short reads what most arrays have, whole numbers of few digits, true and false, if it begins with c and a delimiter follows.
func (s *jsonSource) short(c byte) (x float64, ok bool) {
	b := s.b[s.at:]
	n := 0
	switch {
	case c-'0' <= 9 || c == '-' && len(b) > 1 && b[1]-'0' <= 9:
		whole := int32(0)
		if c == '-' {
			n++
		}
		for ; n < len(b) && n < 9 && b[n]-'0' <= 9; n++ {
			whole = 10*whole + int32(b[n]-'0')
		}
		if x = float64(whole); c == '-' {
			x = -x // also -0
		}
	case len(b) > 4 && string(b[:4]) == "true":
		x, n = 1, 4
	case len(b) > 5 && string(b[:5]) == "false":
		n = 5
	}
	if n == 0 || n == len(b) || !ends(b[n]) {
		return 0, false
	}
	s.at += n
	return x, true
}

func (s *jsonSource) from(at cursor) source { return &jsonSource{at} }

// jump counts braces, also those in strings.
func (s *jsonSource) jump() bool {
	if s.peek() != '{' {
		return false
	}
	for depth := 0; ; {
		n := bytes.IndexByte(s.b[s.at:], '}') + 1
		if n == 0 {
			return false
		}
		depth += bytes.Count(s.b[s.at:s.at+n], []byte("{")) - 1
		if s.at += n; depth <= 0 {
			return true
		}
	}
}

func (s *jsonSource) text() (string, error) {
	switch c := s.peek(); {
	case c == '"':
		return s.string()
	case c == '[', c == '{', c == 0:
		return "", s.unexpected(c, "a string or a number")
	}
	return string(s.word()), nil
}

func (s *jsonSource) skip() error {
	switch s.peek() {
	case '{':
		return s.object(func(string) error { return s.skip() })
	case '[':
		if n := flat(s.b[s.at:]); n > 0 {
			s.at += n
			return nil
		}
		return s.array(s.skip)
	case '"':
		_, err := s.string()
		return err
	}
	if bytes.HasPrefix(s.b[s.at:], []byte("null")) && (s.at+4 == len(s.b) || ends(s.b[s.at+4])) {
		s.at += 4
		return nil
	}
	_, err := s.number()
	return err
}

// flat returns the length of an array that has neither arrays, objects nor strings, 0 if it has or does not end.
func flat(b []byte) int {
	n := bytes.IndexByte(b, ']') + 1
	if n == 0 || bytes.IndexByte(b[1:n], '[') >= 0 || bytes.IndexByte(b[:n], '{') >= 0 || bytes.IndexByte(b[:n], '"') >= 0 {
		return 0
	}
	return n
}

// word reads up to the next delimiter.
func (s *jsonSource) word() []byte {
	s.peek()
	start := s.at
	for s.at < len(s.b) && !ends(s.b[s.at]) {
		s.at++
	}
	return s.b[start:s.at]
}

// ends says whether c ends a word.
func ends(c byte) bool {
	switch c {
	case ',', ']', '}', ':', ' ', '\n', '\t', '\r', '"', '[', '{':
		return true
	}
	return false
}

// string reads a string.
func (s *jsonSource) string() (string, error) {
	if err := s.want('"'); err != nil {
		return "", err
	}
	start := s.at
	for ; s.at < len(s.b); s.at++ {
		switch s.b[s.at] {
		case '\\':
			s.at++
		case '"':
			raw := s.b[start:s.at]
			s.at++
			if bytes.IndexByte(raw, '\\') < 0 {
				return string(raw), nil
			}
			var text string
			if err := json.Unmarshal(s.b[start-1:s.at], &text); err != nil {
				return "", s.errorf("a bad escape in a string")
			}
			return text, nil
		}
	}
	s.at = len(s.b)
	return "", s.errorf("the file ends within a string; it is cut short")
}

// number reads a number, true or false.
func (s *jsonSource) number() (float64, error) {
	s.peek()
	if x, n := decimal(s.b[s.at:]); n > 0 && (s.at+n == len(s.b) || ends(s.b[s.at+n])) {
		s.at += n
		return x, nil
	}
	word := s.word()
	switch string(word) {
	case "true":
		return 1, nil
	case "false":
		return 0, nil
	}
	if len(word) == 0 {
		return 0, s.unexpected(s.peek(), "a number")
	}
	x, err := parse32(string(word[:min(len(word), 400)]))
	if err != nil || len(word) > 400 || bytes.ContainsAny(word, "_xXpP") { // forms of Go, not of JSON
		s.at -= len(word)
		return 0, s.errorf("%.40q is not a number", word)
	}
	return x, nil
}
