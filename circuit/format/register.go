package format

import (
	"io"
	"slices"
	"strings"
	"sync"
)

// Format is a kind of model file.
type Format struct {
	// Name stands in errors, such as "native" or "text".
	Name string
	// Recognises reports whether a file starts as files of the format do. head is
	// the start of the file, HeadBytes of it or all that there is, unpacked.
	Recognises func(head []byte) bool
	// Decode opens a model of size bytes and validates its structure; r stays in
	// use while the model is. Decode may be called by several goroutines at once.
	Decode func(r io.ReaderAt, size int64) (*Model, error)
}

// HeadBytes is how much of a file its format is recognised by.
const HeadBytes = 64 << 10

// formats are asked in the order in which they were registered.
var formats = struct {
	sync.Mutex // guards list
	list       []Format
}{}

// Register adds a format that Open and Decode recognise. Of two formats with
// one name the later replaces the earlier, so registering twice is harmless.
func Register(f Format) {
	formats.Lock()
	defer formats.Unlock()
	if i := slices.IndexFunc(formats.list, func(g Format) bool { return g.Name == f.Name }); i >= 0 {
		formats.list[i] = f
		return
	}
	formats.list = append(formats.list, f)
}

// Names returns the names of the registered formats, in the order in which they
// are tried.
func Names() []string {
	var names []string
	for _, f := range registered() {
		names = append(names, f.Name)
	}
	return names
}

func registered() []Format {
	formats.Lock()
	defer formats.Unlock()
	return slices.Clone(formats.list)
}

// find returns the first format that recognises the start of a file.
func find(head []byte) (Format, bool) {
	for _, f := range registered() {
		if f.Recognises(head) {
			return f, true
		}
	}
	return Format{}, false
}

// tried lists the formats in an error about a file that none of them recognises.
func tried() string {
	names := Names()
	if len(names) == 0 {
		return "none, for the program registers none"
	}
	return strings.Join(names, ", ")
}
