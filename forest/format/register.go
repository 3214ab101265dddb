package format

import (
	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/internal/registry"
)

// Format is a kind of model file.
type Format struct {
	// Name is what errors call the format, such as "xgboost-json".
	Name string
	// Recognises reports whether a file starts as files of the format do. head is
	// the start of the file, HeadBytes of it or all that there is, unpacked.
	Recognises func(head []byte) bool
	// Decode reads a whole file into a forest that has passed forest.Check. It
	// keeps nothing of file. Several goroutines may call it at once.
	Decode func(file []byte) (*forest.Forest, error)
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
