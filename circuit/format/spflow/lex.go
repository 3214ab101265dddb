package spflow

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// token is a word, a number, or a single character.
type token struct {
	kind byte // 'w', 'n', 0 at the end, or the character
	text string
	at   int // offset
}

// String names a token in errors.
func (t token) String() string {
	if t.kind == 0 {
		return "the end of the text"
	}
	return fmt.Sprintf("%.40q", t.text)
}

type lexer struct {
	text string
	at   int
	next token
}

func newLexer(text string) *lexer {
	l := &lexer{text: text}
	if strings.HasPrefix(text, "\ufeff") {
		l.at = len("\ufeff")
	}
	l.take()
	return l
}

// isWord reports whether a byte may be part of a name; names of variables have any letters.
func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c >= utf8.RuneSelf
}

// take returns the next token and moves on. The line of names is not made of tokens: see rest.
func (l *lexer) take() token {
	t := l.next
	for l.at < len(l.text) && strings.IndexByte(" \t\r\n", l.text[l.at]) >= 0 {
		l.at++
	}
	if l.at == len(l.text) {
		l.next = token{0, "", l.at}
		return t
	}
	start := l.at
	c := l.text[start]
	digit := func(i int) bool { return i < len(l.text) && l.text[i] >= '0' && l.text[i] <= '9' }
	switch {
	case digit(start) || (c == '.' || c == '-' || c == '+') && digit(start+1) || c == '-' && strings.HasPrefix(l.text[start+1:], ".") && digit(start+2):
		l.at++
		for l.at < len(l.text) {
			d := l.text[l.at]
			exponent := (d == '-' || d == '+') && (l.text[l.at-1]|0x20 == 'e')
			if !exponent && !isWord(d) {
				break
			}
			l.at++
		}
		l.next = token{'n', l.text[start:l.at], start}
	case isWord(c):
		for l.at < len(l.text) && isWord(l.text[l.at]) {
			l.at++
		}
		l.next = token{'w', l.text[start:l.at], start}
	default:
		l.at++
		l.next = token{c, l.text[start:l.at], start}
	}
	return t
}

// until returns the text from the next token to before the first of some characters, without
// space at its ends, and moves there.
func (l *lexer) until(ends string) string {
	start := l.next.at
	n := strings.IndexAny(l.text[start:], ends)
	if n < 0 {
		n = len(l.text) - start
	}
	l.at = start + n
	l.take()
	return strings.TrimSpace(l.text[start : start+n])
}

// place is the line and the column of an offset, counted from 1.
func (l *lexer) place(at int) string {
	before := l.text[:at]
	line := 1 + strings.Count(before, "\n")
	column := 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	return fmt.Sprintf("line %d, column %d", line, column)
}

// fail returns an error that starts with a place.
func (l *lexer) fail(at int, format string, args ...any) error {
	return fmt.Errorf("%s: %w", l.place(at), fmt.Errorf(format, args...))
}

func (l *lexer) expect(kind byte) (token, error) {
	t := l.take()
	if t.kind != kind {
		return t, l.fail(t.at, "%v where %q should be", t, string(rune(kind)))
	}
	return t, nil
}

// number reads a finite number.
func (l *lexer) number() (float64, error) {
	t := l.take()
	if t.kind != 'n' {
		return 0, l.fail(t.at, "%v where a number should be", t)
	}
	x, err := strconv.ParseFloat(t.text, 64)
	if err != nil || strings.ContainsAny(t.text, "xX_pP") {
		return 0, l.fail(t.at, "%v is not a finite number", t)
	}
	return x, nil
}

// list reads numbers in brackets.
func (l *lexer) list() ([]float64, error) {
	if _, err := l.expect('['); err != nil {
		return nil, err
	}
	var list []float64
	for {
		x, err := l.number()
		if err != nil {
			return nil, err
		}
		list = append(list, x)
		switch t := l.take(); t.kind {
		case ',':
		case ']':
			return list, nil
		default:
			return nil, l.fail(t.at, "%v where , or ] should be", t)
		}
	}
}
