package reduction

import (
	"strings"
	"unicode/utf8"
)

// kind is a class of tokens.
type kind int

const (
	end kind = iota
	identifier
	integer
	decimal
	symbol
)

// token is a word of the source.
type token struct {
	Pos
	kind kind
	text string
}

// String is how messages call the token.
func (t token) String() string {
	if t.kind == end {
		return "the end"
	}
	return "'" + t.text + "'"
}

// symbols lists what is made of two characters; any other symbol is one.
var symbols = []string{"+=", "*=", "<=", ">=", "==", "!="}

// lexer cuts the source into tokens.
type lexer struct {
	src          string
	at           int
	line, column int
}

// next returns the token that comes after blanks and comments.
func (l *lexer) next() (token, error) {
	l.blanks()
	t := token{Pos: Pos{l.line, l.column}}
	if l.at == len(l.src) {
		return t, nil
	}
	rest := l.src[l.at:]
	n := 1
	switch c := rest[0]; {
	case letter(c):
		for n < len(rest) && (letter(rest[n]) || digit(rest[n])) {
			n++
		}
		t.kind = identifier
	case digit(c):
		n, t.kind = numberLength(rest)
		if n < len(rest) && letter(rest[n]) {
			return t, errorf(t.Pos, "'%s' is neither a number nor a name", rest[:n+1])
		}
	case strings.IndexByte("+-*/<>=()[]{},:;", c) >= 0:
		t.kind = symbol
		if len(rest) > 1 && contains(symbols, rest[:2]) {
			n = 2
		}
	case len(rest) > 1 && contains(symbols, rest[:2]):
		t.kind, n = symbol, 2
	default:
		_, n = utf8.DecodeRuneInString(rest)
		return t, errorf(t.Pos, "unexpected character %q", rest[:n])
	}
	t.text = rest[:n]
	l.at += n
	l.column += n
	return t, nil
}

// blanks skips white space and comments.
func (l *lexer) blanks() {
	for l.at < len(l.src) {
		switch c := l.src[l.at]; {
		case c == '\n':
			l.line, l.column = l.line+1, 0
		case c == '#':
			for l.at+1 < len(l.src) && l.src[l.at+1] != '\n' {
				l.at++
			}
		case c != ' ' && c != '\t' && c != '\r':
			return
		}
		l.at++
		l.column++
	}
}

// numberLength returns the length and kind of the number at the start of s.
func numberLength(s string) (int, kind) {
	digits := func(n int) int {
		for n < len(s) && digit(s[n]) {
			n++
		}
		return n
	}
	n, k := digits(0), integer
	if n+1 < len(s) && s[n] == '.' && digit(s[n+1]) {
		n, k = digits(n+1), decimal
	}
	if n < len(s) && (s[n] == 'e' || s[n] == 'E') {
		m := n + 1
		if m < len(s) && (s[m] == '+' || s[m] == '-') {
			m++
		}
		if e := digits(m); e > m {
			n, k = e, decimal
		}
	}
	return n, k
}

func letter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
