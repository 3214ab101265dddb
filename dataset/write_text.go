package dataset

import (
	"bufio"
	"strconv"
	"unicode"
)

// textWriter writes rows of tokens as people read them: a line for each row, characters
// next to each other, words with a blank between them. What would break the line, or act
// on a terminal, is written with a backslash, as in Go: \n is a line end, \\ a backslash.
// \? is a missing token.
type textWriter struct {
	w      *bufio.Writer
	schema *Schema
	line   []byte
}

// Write writes each row as a line: characters joined, words and numbers divided by blanks, a
// missing cell as \?. Characters that would break the line or a terminal are escaped. A code
// that the column does not have is an error that names it.
func (t *textWriter) Write(b *Batch) error {
	for r := range b.Rows {
		t.line = t.line[:0]
		for i := range b.Columns {
			labels := t.schema.Columns[i].Labels
			if i > 0 && (t.schema.Unit == Word || labels == nil) {
				t.line = append(t.line, ' ')
			}
			code := b.Columns[i].Codes.At(r)
			switch {
			case code == Missing:
				t.line = append(t.line, `\?`...)
			case code >= t.schema.Columns[i].Categories:
				return badSetting("code %d of %s, which has %d categories", code, t.schema.ColumnName(i), t.schema.Columns[i].Categories)
			case labels == nil:
				t.line = strconv.AppendInt(t.line, int64(code), 10)
			default:
				t.line = appendPrintable(t.line, labels[code])
			}
		}
		t.line = append(t.line, '\n')
		if _, err := t.w.Write(t.line); err != nil {
			return err
		}
	}
	return nil
}

// appendPrintable appends a token, with escapes for what is not printed.
func appendPrintable(line []byte, token string) []byte {
	for _, r := range token {
		if unicode.IsPrint(r) && r != '\\' {
			line = append(line, string(r)...)
			continue
		}
		quoted := strconv.QuoteRune(r)
		line = append(line, quoted[1:len(quoted)-1]...)
	}
	return line
}

func (t *textWriter) Close() error { return t.w.Flush() }
