package dataset

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/pce-engine/pce/dataset/fields"
)

// Limits on what is looked at to tell a dialect.
const dialectRecords = 100

// dialectOf tells line ends and delimiter of a table by its first bytes; whole
// says that these are all. Lines end in CR if there is no LF. Where the
// customary delimiter leaves records of one cell, or of different numbers of
// cells, another one that gives all records the same number is taken: programs
// write semicolons and tabs into files named .csv. A semicolon or a tab is also
// preferred to a comma that occurs in numbers only (1,5;2,5), so that reading
// meets these numbers and refuses them. Text that is not a record tells against
// a delimiter under which it is none; where that is so of all that cut records
// into cells, the records before it decide, so that reading meets that text.
func dialectOf(start []byte, whole bool, customary byte) fields.Dialect {
	d := fields.Dialect{Delimiter: customary}
	seen := start
	if !whole && len(seen) > 0 { // the LF of the last line may be yet to come
		seen = seen[:len(seen)-1]
	}
	d.CR = bytes.IndexByte(start, '\n') < 0 && bytes.IndexByte(seen, '\r') >= 0
	for _, broken := range []bool{false, true} {
		if n := cellsOf(start, whole, d); n.fits(broken) && !(customary == ',' && n.decimals) {
			return d
		}
		for _, delimiter := range []byte{',', ';', '\t'} {
			other := fields.Dialect{Delimiter: delimiter, CR: d.CR}
			if delimiter != customary && cellsOf(start, whole, other).fits(broken) {
				return other
			}
		}
	}
	return d
}

// separator returns the delimiter that a first line of the form sep=; names, and the length of
// that line, 0 without one. Spreadsheets write such lines, and do not show them.
func separator(start []byte) (delimiter byte, length int) {
	line := bytes.TrimPrefix(start, []byte("\xef\xbb\xbf"))
	if n := bytes.IndexAny(line, "\r\n"); n >= 0 {
		line = line[:n]
	}
	if len(line) != 5 || !bytes.EqualFold(line[:4], []byte("sep=")) || !strings.ContainsRune(",;\t", rune(line[4])) {
		return 0, 0
	}
	return line[4], bytes.Index(start, line) + len(line)
}

// recordShape is what records have in common under a dialect.
type recordShape struct {
	cells    int  // of the first record
	same     bool // all records have as many
	decimals bool // commas occur in numbers only; see decimalCommas
	broken   bool // the text behind them is not a record
}

// fits reports whether the records have one number of cells, two or more, and whether they are broken is as wanted.
func (s recordShape) fits(broken bool) bool { return s.same && s.cells > 1 && s.broken == broken }

// cellsOf cuts the records at the start of a file. The last one is left out if
// it may be incomplete and is not the only one.
func cellsOf(start []byte, whole bool, d fields.Dialect) recordShape {
	scan := fields.NewScanner(bytes.NewReader(start), d)
	var counts []int
	var s recordShape
	for len(counts) <= dialectRecords {
		cells, err := scan.Next()
		if err != nil { // the end, or a quote that is closed further on, or text that is not a record
			e := (*fields.Error)(nil)
			s.broken = errors.As(err, &e) && !e.Unclosed
			break
		}
		counts = append(counts, len(cells))
	}
	if n := len(counts); n > 1 && (!whole || n > dialectRecords) {
		counts = counts[:n-1]
	}
	if len(counts) == 0 {
		return s
	}
	s.cells = counts[0]
	s.same = !slices.ContainsFunc(counts, func(n int) bool { return n != s.cells })
	s.decimals = s.same && d.Delimiter == ',' && decimalCommas(start, whole, d.CR)
	return s
}

// decimalCommas reports whether semicolons or tabs cut the records into the same
// number of cells, two or more, of which those with a comma are numbers.
func decimalCommas(start []byte, whole, cr bool) bool {
	for _, delimiter := range []byte{';', '\t'} {
		d := fields.Dialect{Delimiter: delimiter, CR: cr}
		if n := cellsOf(start, whole, d); !n.same || n.cells < 2 {
			continue
		}
		scan, all := fields.NewScanner(bytes.NewReader(start), d), true
		for range dialectRecords {
			cells, err := scan.Next()
			if err != nil {
				break
			}
			for _, cell := range cells {
				all = all && (bytes.IndexByte(cell, ',') < 0 || isDecimalComma(cell))
			}
		}
		if all {
			return true
		}
	}
	return false
}

// isDecimalComma reports whether a cell is a number but for commas that are used
// for its decimal point or between its thousands.
func isDecimalComma(cell []byte) bool {
	if bytes.IndexByte(cell, ',') < 0 {
		return false
	}
	cell = bytes.TrimLeft(cell, "+-")
	for _, b := range cell {
		if (b < '0' || b > '9') && b != ',' && b != '.' {
			return false
		}
	}
	return cell[0] != ',' || len(cell) > 1
}
