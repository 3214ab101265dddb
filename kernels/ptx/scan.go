package ptx

import (
	"fmt"
	"strconv"
	"strings"
)

// scanner walks over text. Its methods skip blanks and comments first; after the
// first error they change nothing and return zeros, so that callers need to look
// at err only where they loop.
type scanner struct {
	text string
	pos  int
	line int
	err  error
}

// fail keeps the first error. What was found is cut out of the text by itself.
func (s *scanner) fail(want string) {
	if s.err != nil {
		return
	}
	found := "the end of the text"
	if s.pos < len(s.text) {
		rest := s.text[s.pos:min(len(s.text), s.pos+24)]
		if i := strings.IndexAny(rest, " \t\r\n"); i > 0 {
			rest = rest[:i]
		}
		found = strconv.QuoteToASCII(rest)
	}
	s.err = fmt.Errorf("%w: line %d: %s; want %s", ErrSyntax, s.line, found, want)
}

// skip passes blanks, ends of lines and // comments.
func (s *scanner) skip() {
	for s.pos < len(s.text) {
		switch c := s.text[s.pos]; {
		case c == '\n':
			s.line++
			s.pos++
		case c == ' ' || c == '\t' || c == '\r':
			s.pos++
		case c == '/' && strings.HasPrefix(s.text[s.pos:], "//"):
			end := strings.IndexByte(s.text[s.pos:], '\n')
			if end < 0 {
				end = len(s.text) - s.pos
			}
			s.pos += end
		default:
			return
		}
	}
}

// peek returns the next byte that counts, 0 at the end and after an error.
func (s *scanner) peek() byte {
	s.skip()
	if s.err != nil || s.pos >= len(s.text) {
		return 0
	}
	return s.text[s.pos]
}

// accept passes c if it is next.
func (s *scanner) accept(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.pos++
	return true
}

// expect passes c, which must be next.
func (s *scanner) expect(c byte) {
	if s.err == nil && !s.accept(c) {
		s.fail(strconv.Quote(string(c)))
	}
}

// word passes a run of the bytes of a name; it may be empty.
func (s *scanner) word() string {
	if s.peek() == 0 {
		return ""
	}
	start := s.pos
	for s.pos < len(s.text) && inName(s.text[s.pos]) {
		s.pos++
	}
	return s.text[start:s.pos]
}

// directive passes ".name".
func (s *scanner) directive(name string) {
	if !s.acceptDirective(name) {
		s.fail("." + name)
	}
}

func (s *scanner) acceptDirective(name string) bool {
	if s.peek() != '.' {
		return false
	}
	rest := s.text[s.pos+1:]
	if !strings.HasPrefix(rest, name) || len(rest) > len(name) && inName(rest[len(name)]) {
		return false
	}
	s.pos += 1 + len(name)
	return true
}

// name passes a name that says what it is the name of.
func (s *scanner) name(of string) string {
	if !startsName(s.peek()) {
		s.fail("the name of " + of)
		return ""
	}
	return s.word()
}

// number passes a decimal number from least to most.
func (s *scanner) number(what string, least, most int) int {
	c, start := s.peek(), s.pos
	if isDigit(c) {
		w := s.word()
		if n, err := strconv.Atoi(w); err == nil && n >= least && n <= most {
			return n
		}
		s.pos = start
	}
	s.fail(fmt.Sprintf("%s from %d to %d", what, least, most))
	return 0
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func startsName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$'
}

func inName(c byte) bool { return startsName(c) || isDigit(c) }

// isName reports whether text could hold s as the name of something.
func isName(s string) bool {
	if s == "" || !startsName(s[0]) {
		return false
	}
	for i := 1; i < len(s); i++ {
		if !inName(s[i]) {
			return false
		}
	}
	return true
}
