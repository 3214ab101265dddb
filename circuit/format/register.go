package format

import (
	"io"

	"github.com/pce-engine/pce/internal/registry"
)

// Format is a kind of model file.
type Format struct {
	// Name is what errors call the format, such as "native" or "text".
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
var formats registry.Registry[Format]

// Register adds a format that Open and Decode recognise. Of two formats with one
// name the later replaces the earlier, so registering twice is harmless.
func Register(f Format) { formats.Put(f.Name, f) }

// Names returns the names of the registered formats, in the order in which they
// are tried.
func Names() []string { return formats.Names() }

// find returns the first format that recognises the start of a file.
func find(head []byte) (Format, bool) {
	for _, f := range formats.All() {
		if f.Recognises(head) {
			return f, true
		}
	}
	return Format{}, false
}
