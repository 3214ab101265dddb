package run

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
)

// Polynomial is a polynomial of degree 2 in the numbers of a row.
type Polynomial struct {
	Constant float64
	Terms    []Term
}

// Term is a factor times one column, counted from 0, or the product of two, which may be the
// same.
type Term struct {
	Factor  float64
	Columns []int
}

// check reports what is wrong with a polynomial in the numbers of rows of that many columns.
func (p *Polynomial) check(columns int) error {
	finite := func(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
	if !finite(p.Constant) {
		return fmt.Errorf("%w: a polynomial with the constant %v; want a finite number", ErrOptions, p.Constant)
	}
	for _, t := range p.Terms {
		if d := len(t.Columns); d < 1 || d > 2 || slices.Min(t.Columns) < 0 || slices.Max(t.Columns) >= columns || !finite(t.Factor) {
			return fmt.Errorf("%w: a term of %v times columns %v; want a finite factor and one or two columns of 0 to %d", ErrOptions, t.Factor, t.Columns, columns-1)
		}
	}
	return nil
}

// expect writes the expectations of polynomials for the rows of b to out, [rows, polynomials].
func expect(ctx context.Context, e *engine.Engine, b *dataset.Batch, of []Polynomial, out []float64) error {
	list := make([]engine.Polynomial, len(of))
	for i, p := range of {
		list[i].Constant = p.Constant
		for _, t := range p.Terms {
			list[i].Terms = append(list[i].Terms, engine.Term{Factor: t.Factor, Variables: t.Columns})
		}
	}
	return e.Expect(ctx, b, list, out)
}

// NewExpectation makes a query for the expectations of polynomials in the columns of s.
func NewExpectation(s *dataset.Schema, polynomials []string) (*Query, error) {
	q := &Query{Kind: QueryExpect}
	for _, text := range polynomials {
		p, err := ParsePolynomial(s, text)
		if err != nil {
			return nil, err
		}
		q.Of = append(q.Of, p)
	}
	return q, q.Check(s)
}

// maxPolynomial bounds the length of the text of a polynomial, in bytes.
const maxPolynomial = 1 << 16

// ParsePolynomial reads a polynomial of degree 2 in the columns of s, such as
//
//	2*age + 0.5*age*$3 - "net income"^2 + 1e3
//
// A column is named by letters, digits, points and underscores that begin with a letter or an
// underscore, by any name between double quotes, or by $ and its number counted from 1. A term
// is a product of numbers and at most two columns; ^2 is the square of the column before it.
func ParsePolynomial(s *dataset.Schema, text string) (Polynomial, error) {
	p := &polynomialParser{schema: s, text: text}
	if len(text) > maxPolynomial {
		return Polynomial{}, p.fail("it has %d bytes, more than %d", len(text), maxPolynomial)
	}
	var sum Polynomial
	for sign := p.sign(1); ; {
		t, err := p.term()
		if err != nil {
			return Polynomial{}, err
		}
		if t.Factor *= sign; math.IsInf(t.Factor, 0) {
			return Polynomial{}, p.fail("the factor of the term before character %d is beyond the largest number", p.character(p.at))
		}
		if len(t.Columns) == 0 {
			sum.Constant += t.Factor
		} else {
			sum.Terms = append(sum.Terms, t)
		}
		switch p.skip(); {
		case p.at == len(p.text):
			if math.IsInf(sum.Constant, 0) {
				return Polynomial{}, p.fail("its constant is beyond the largest number")
			}
			return sum, nil
		case p.text[p.at] == '+' || p.text[p.at] == '-':
			sign = p.sign(1)
		default:
			return Polynomial{}, p.failAt(p.at, "want +, - or * before %.20q", p.text[p.at:])
		}
	}
}

// polynomialParser reads the text of a polynomial from the byte at on.
type polynomialParser struct {
	schema *dataset.Schema
	text   string
	at     int
}

func (p *polynomialParser) fail(format string, args ...any) error {
	return fmt.Errorf("%w: %.60q: %s", ErrOptions, p.text, fmt.Sprintf(format, args...))
}

// failAt is fail with the character that the byte at begins.
func (p *polynomialParser) failAt(at int, format string, args ...any) error {
	return p.fail("character %d: %s", p.character(at), fmt.Sprintf(format, args...))
}

// character counts the characters up to a byte, from 1.
func (p *polynomialParser) character(at int) int { return utf8.RuneCountInString(p.text[:at]) + 1 }

func (p *polynomialParser) skip() {
	p.at = len(p.text) - len(strings.TrimLeftFunc(p.text[p.at:], unicode.IsSpace))
}

// sign reads any number of signs after the given one.
func (p *polynomialParser) sign(sign float64) float64 {
	for p.skip(); p.at < len(p.text) && (p.text[p.at] == '+' || p.text[p.at] == '-'); p.skip() {
		if p.text[p.at] == '-' {
			sign = -sign
		}
		p.at++
	}
	return sign
}

// term reads the factors of a term, numbers and columns, up to what is not a *. A column
// squared counts twice; more than two columns, and powers other than 2, are errors that say at
// which character.
func (p *polynomialParser) term() (Term, error) {
	t := Term{Factor: 1}
	for {
		p.skip()
		if p.at == len(p.text) {
			return t, p.fail("it ends where a number or a column is wanted")
		}
		from := p.at
		if c := p.text[p.at]; c >= '0' && c <= '9' || c == '.' {
			x, err := p.number()
			if err != nil {
				return t, err
			}
			t.Factor *= x
		} else {
			v, err := p.column()
			if err != nil {
				return t, err
			}
			t.Columns = append(t.Columns, v)
			if p.skip(); p.at < len(p.text) && p.text[p.at] == '^' {
				p.at++
				if p.skip(); !strings.HasPrefix(p.text[p.at:], "2") || digitAt(p.text, p.at+1) {
					return t, p.failAt(p.at, "want 2 after ^; moments of higher degree are not computed")
				}
				p.at++
				t.Columns = append(t.Columns, v)
			}
		}
		if len(t.Columns) > 2 {
			return t, p.failAt(from, "a term has more than two columns; moments of higher degree are not computed")
		}
		if p.skip(); p.at == len(p.text) || p.text[p.at] != '*' {
			return t, nil
		}
		p.at++
	}
}

func digitAt(text string, at int) bool {
	return at < len(text) && (text[at] >= '0' && text[at] <= '9' || text[at] == '.')
}

// number reads a decimal number without a sign.
func (p *polynomialParser) number() (float64, error) {
	end := p.at
	for ; end < len(p.text); end++ {
		c := p.text[end]
		exponent := end > p.at && (p.text[end-1] == 'e' || p.text[end-1] == 'E')
		if !(c >= '0' && c <= '9' || c == '.' || c == 'e' || c == 'E' || exponent && (c == '+' || c == '-')) {
			break
		}
	}
	x, err := strconv.ParseFloat(p.text[p.at:end], 64)
	if err != nil {
		return 0, p.failAt(p.at, "%.20q is not a number", p.text[p.at:end])
	}
	p.at = end
	return x, nil
}

// column reads a column, as a bare name, a name in double quotes, or $ and its number from 1,
// and returns its index. It is called where a factor must begin and the text has not ended. A
// name that the schema lacks is an error that says how columns are written.
func (p *polynomialParser) column() (int, error) {
	from := p.at
	name := ""
	switch rest := p.text[p.at:]; {
	case rest[0] == '"':
		quoted, _, ok := strings.Cut(rest[1:], `"`)
		if !ok {
			return 0, p.failAt(from, `a name begins with " and does not end`)
		}
		name = quoted
		p.at += len(quoted) + 2
	case rest[0] == '$':
		n := len(rest[1:]) - len(strings.TrimLeft(rest[1:], "0123456789"))
		k, err := strconv.Atoi(rest[1 : 1+n])
		if err != nil || k < 1 || k > len(p.schema.Columns) {
			return 0, p.failAt(from, "want a number from 1 to %d after $", len(p.schema.Columns))
		}
		p.at += 1 + n
		return k - 1, nil
	default:
		end := strings.IndexFunc(rest, func(c rune) bool { return !(unicode.IsLetter(c) || unicode.IsDigit(c) || c == '_' || c == '.') })
		if end < 0 {
			end = len(rest)
		}
		if end == 0 {
			return 0, p.failAt(from, "want a number or a column before %.20q", rest)
		}
		name = rest[:end]
		p.at += end
	}
	for i := range p.schema.Columns {
		if name != "" && p.schema.Columns[i].Name == name {
			return i, nil
		}
	}
	return 0, p.failAt(from, `the model has no column %.60q; write a name of its header, between " if it has other characters than letters, digits, . and _, or $1 to $%d`,
		name, len(p.schema.Columns))
}
