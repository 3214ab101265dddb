package native

import (
	"bytes"
	"crypto/sha256"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
)

// Format is the native format.
var Format = format.Format{Name: "native", Recognises: recognises, Decode: decode}

// recognises: a safetensors file whose header is shorter than 4 GiB.
func recognises(head []byte) bool {
	return len(head) > 8 && bytes.Equal(head[4:9], []byte{0, 0, 0, 0, '{'})
}

// Versions. A reader accepts its major version up to its minor version; a writer
// gives a file the least version that has what is in it, so that programs that
// are older read what they can.
const (
	majorVersion = 1
	minorVersion = 2
	checkedMinor = 1 // the first minor version with a checksum
	wideMinor    = 2 // the first minor version with float64 parameters
)

// Metadata of native files.
const (
	keyFormat    = "format"
	keyVersion   = "format_version"
	keyVariables = "variables"
	keyRoot      = "root"
	keyLeaves    = "leaves"
	keyDigest    = "digest"
	metaPrefix   = "meta." // in front of the caller's keys

	nativeName  = "pce.circuit"
	paramTensor = "params"
	unitTensor  = "node.units" // the first one of 4-byte elements
	kindTensor  = "node.kind"  // the last one of the structure
	checkTensor = "sha256"     // of all bytes before it, the header's included
)

// Digest names the structure of a valid graph, whatever its parameters: equal
// graphs have equal digests.
func Digest(g *circuit.Graph) ([sha256.Size]byte, error) {
	s, err := flatten(g)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	return s.digest()
}
