package text

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// token is a piece of a text model. Its kind is 'w' for a word (a name, a
// keyword, a number), '"' for a string, '\n' for the end of a statement, 0 for
// the end of the text, and else the character itself.
type token struct {
	kind byte
	text string
	at   int // offset in the text; an end is right behind what it ends
}

// String names the token in error messages.
func (t token) String() string {
	switch t.kind {
	case 0:
		return "the end of the text"
	case '\n':
		return "the end of the statement"
	}
	if utf8.RuneCountInString(t.text) > 40 {
		return fmt.Sprintf("%.40q…", t.text)
	}
	return fmt.Sprintf("%q", t.text)
}

// lexer cuts a text model into tokens. next is the token that comes next.
type lexer struct {
	text string
	pos  int // after next
	next token
}

// mark is the byte order mark, which some editors put in front of a text.
const mark = "\ufeff"

func newLexer(text string) *lexer {
	l := &lexer{text: strings.TrimPrefix(text, mark)}
	l.take()
	if l.next.kind == '\n' { // comments and empty lines before the first statement
		l.take()
	}
	return l
}

// take returns the next token and reads the one after it. A statement ends before a line that
// is not indented, which is a token of its own; words, quoted texts and single characters are
// the others. It never fails: a text without its closing quote is found by the parser.
func (l *lexer) take() token {
	t, end := l.next, l.pos
	ended := l.skip()
	start := l.pos
	switch {
	case ended:
		l.next = token{kind: '\n', at: end}
	case l.pos == len(l.text):
		l.next = token{at: end}
	case isWord(l.text[start]):
		for l.pos < len(l.text) && isWord(l.text[l.pos]) {
			l.pos++
		}
		l.next = token{'w', l.text[start:l.pos], start}
	case l.text[start] == '"':
		l.pos++
		for l.pos < len(l.text) && l.text[l.pos] != '"' && l.text[l.pos] != '\n' {
			if l.text[l.pos] == '\\' && l.pos+1 < len(l.text) {
				l.pos++
			}
			l.pos++
		}
		l.pos = min(l.pos+1, len(l.text))
		l.next = token{'"', l.text[start:l.pos], start}
	default:
		_, n := utf8.DecodeRuneInString(l.text[start:])
		l.pos += n
		l.next = token{l.text[start], l.text[start:l.pos], start}
	}
	return t
}

// skip passes over blanks, comments and the newlines inside a statement. It
// reports whether a statement ends here: a line follows that is not indented,
// or nothing does.
func (l *lexer) skip() bool {
	newline, indented := false, false
	for l.pos < len(l.text) {
		switch l.text[l.pos] {
		case '\n':
			newline, indented = true, false
		case ' ', '\t', '\r':
			indented = true
		case '#':
			end := strings.IndexByte(l.text[l.pos:], '\n')
			if end < 0 {
				end = len(l.text) - l.pos
			}
			l.pos += end - 1
		default:
			return newline && !indented
		}
		l.pos++
	}
	return false
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '-' || c == '+'
}

// isName reports whether a word may name a node.
func isName(s string) bool {
	return !keywords[s] && !isNumeric(s) && !strings.ContainsAny(s, "+-")
}

// isNumeric reports whether a word starts as a number does.
func isNumeric(s string) bool {
	return strings.IndexByte("0123456789.+-", s[0]) >= 0
}

// keywords cannot name nodes.
var keywords = map[string]bool{
	"circuit": true, "meta": true, "root": true, "input": true, "product": true,
	"sum": true, "edges": true, "mask": true, "tied": true,
}

// textError is a fault at a place in a text.
type textError struct {
	line, column int
	err          error
}

func (e *textError) Error() string {
	return fmt.Sprintf("line %d, column %d: %v", e.line, e.column, e.err)
}

func (e *textError) Unwrap() error { return e.err }

// fail returns an error at an offset.
func (l *lexer) fail(at int, format string, args ...any) error {
	before := l.text[:at]
	return &textError{
		line:   strings.Count(before, "\n") + 1,
		column: utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1,
		err:    fmt.Errorf(format, args...),
	}
}
