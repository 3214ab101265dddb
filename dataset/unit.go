package dataset

// Unit is what a token of text is: a character or a word. "" means rows that are not text.
type Unit string

// The units of text.
const (
	Char Unit = "char" // a character, blanks and line ends included
	Word Unit = "word" // what is between blanks
)

func (u Unit) check() error {
	switch u {
	case "", Char, Word:
		return nil
	}
	return badSetting("text unit %q; write char or word", string(u))
}
