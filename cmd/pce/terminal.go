package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// mostColumns is the longest line that pce writes for people, however wide the
// terminal is.
const mostColumns = 100

// columnsOf returns how many columns a line on w may have, and whether w is a terminal.
// It asks the terminal each time, as its window may have been resized. Streams that are
// not terminals, and terminals that do not know their size, get mostColumns and 80.
func columnsOf(w io.Writer) (columns int, terminal bool) {
	f, ok := w.(*os.File)
	if !ok {
		return mostColumns, false
	}
	n, ok := windowColumns(f)
	switch {
	case !ok:
		return mostColumns, false
	case n <= 0:
		return 80, true
	}
	return min(n, mostColumns), true
}

// isTerminal reports whether w is one.
func isTerminal(w io.Writer) bool {
	_, yes := columnsOf(w)
	return yes
}

// wrap breaks text between words into lines of at most columns; the lines after the
// first are indented. A word that is longer than a line has a line of its own.
func wrap(text, indent string, columns int) string {
	var b strings.Builder
	used := 0
	for i, word := range strings.Split(text, " ") {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case used+1+n > columns && used > len(indent):
			b.WriteString("\n" + indent)
			used = len(indent)
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += n
	}
	return b.String()
}

// tell writes a sentence to w as one line, which a terminal gets broken between words.
func tell(w io.Writer, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if columns, terminal := columnsOf(w); terminal {
		text = wrap(text, "  ", columns)
	}
	_, err := io.WriteString(w, text+"\n")
	return err
}

// tell writes a sentence to stderr.
func (a *app) tell(format string, args ...any) error { return tell(a.stderr, format, args...) }

// labelled puts a label before text, in a column of its own unless the lines are short.
func labelled(label, text string, columns int) string {
	width := 12
	if columns < 60 {
		width = 2
	}
	return wrap(fmt.Sprintf("%-*s%s", max(width, len(label)+1), label, text), strings.Repeat(" ", width), columns) + "\n"
}

// shellLines returns a command as a shell takes it, broken into lines of at most
// columns, less indent, by backslashes.
func shellLines(args []string, indent int, columns int) string {
	const more = `    `
	var b strings.Builder
	used, start := indent, indent
	for i, arg := range args {
		arg = shellWord(arg)
		n := utf8.RuneCountInString(arg)
		switch {
		case i == 0:
		case used+1+n+2 > columns && used > start: // 2: for another backslash
			b.WriteString(" \\\n" + strings.Repeat(" ", indent) + more)
			start = indent + len(more)
			used = start
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(arg)
		used += n
	}
	return b.String()
}

// shellWord quotes an argument where a shell would read it as something else.
func shellWord(arg string) string {
	plain := arg != ""
	for _, r := range arg {
		plain = plain && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,@%+", r))
	}
	if plain {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// count writes a whole number with at most six digits: 999999, then 1.00M.
func count(n int64) string {
	if n > -1e6 && n < 1e6 {
		return strconv.FormatInt(n, 10)
	}
	x := float64(n)
	for _, unit := range "kMGTPE" {
		x /= 1000
		if short := strconv.FormatFloat(x, 'f', decimals(x, 3), 64); unit != 'k' && math.Abs(x) < 999.5 {
			return short + string(unit)
		}
	}
	return strconv.FormatInt(n, 10)
}

// rate writes how many there are in a second: whole numbers as count does, and two digits below 10, as large models have less than
// a row in a second.
func rate(x float64) string {
	if x < 9.95 {
		return strconv.FormatFloat(x, 'g', 2, 64)
	}
	return count(int64(x + 0.5))
}

// figure writes a number with at most six digits, and four after the point.
func figure(x float64) string {
	if a := math.Abs(x); a >= 999999.5 || math.IsNaN(x) {
		return strconv.FormatFloat(x, 'g', 4, 64)
	}
	return strconv.FormatFloat(x, 'f', min(4, decimals(x, 6)), 64)
}

// decimals returns how many digits after the point leave x with digits of them.
func decimals(x float64, digits int) int {
	whole, carry := 1, 10-5*math.Pow10(-digits) // from there on it is rounded to one digit more
	for a := math.Abs(x); a >= carry && whole < digits; a /= 10 {
		whole++
	}
	return digits - whole
}

// span writes a time that something took or will take: 0.3s, 42s, 2m10s, 1h05m.
func span(d time.Duration) string {
	s := d.Seconds()
	switch {
	case s < 9.95:
		return fmt.Sprintf("%.1fs", s)
	case s < 99.5:
		return fmt.Sprintf("%.0fs", s)
	case s < 3599.5:
		return fmt.Sprintf("%dm%02ds", int(s+0.5)/60, int(s+0.5)%60)
	case s < 100*3600-30:
		m := int(s/60 + 0.5)
		return fmt.Sprintf("%dh%02dm", m/60, m%60)
	}
	return count(int64(s/86400)) + "d"
}

// plural counts things: 1 row, 2 rows.
func plural(n int64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return count(n) + " " + thing
}

// several counts things with all digits: 1 row, 1234567 rows.
func several[N int | int64](n N, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return strconv.FormatInt(int64(n), 10) + " " + thing
}

// leaves counts leaves: 1 leaf, 2 leaves.
func leaves[N int | int64](n N) string {
	if n == 1 {
		return "1 leaf"
	}
	return strconv.FormatInt(int64(n), 10) + " leaves"
}

// printable returns a text of a file, quoted where a terminal could obey it or could not show it.
func printable(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) || r == utf8.RuneError }) {
		return strconv.Quote(text)
	}
	return text
}
