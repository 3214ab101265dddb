package forest

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"
)

// Digest returns a digest of all that the forest computes with and its names. Members of a cluster compare it, so that
// two versions of a reader that import a file differently are noticed.
func (f *Forest) Digest() [32]byte {
	h := sha256.New()
	rest := *f // all but the trees and what is behind pointers, which print as addresses
	rest.Trees, rest.Linear, rest.BestTrees, rest.Attributes, rest.Types, rest.Dropout = nil, nil, 0, nil, nil, false
	text := fmt.Sprintf("%#v", rest)
	io.WriteString(h, strings.TrimSuffix(text, ", BestTrees:0, Attributes:map[string]string(nil), Types:[]string(nil), Dropout:false}")+"}") // files hold digests that were made without those fields
	if f.Linear != nil {
		fmt.Fprintf(h, "%#v", *f.Linear)
	}
	var b []byte
	for i := range f.Trees {
		t := &f.Trees[i]
		b = appendNumbers(b[:0], len(t.Nodes), len(t.Values), len(t.Categories))
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(t.Weight))
		for _, n := range t.Nodes {
			b = append(b, byte(n.Test), bit(n.MissingYes)|bit(n.ZeroMissing)<<1)
			b = appendNumbers(b, int(n.Feature), int(n.Yes), int(n.No), int(n.First), int(n.Last), int(n.ID))
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(n.Threshold))
		}
		for _, v := range t.Values {
			b = binary.LittleEndian.AppendUint64(appendNumbers(b, int(v.Output)), math.Float64bits(v.Value))
		}
		for _, c := range t.Categories {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(c))
		}
		h.Write(b)
	}
	return [32]byte(h.Sum(nil))
}

// appendNumbers appends whole numbers.
func appendNumbers(b []byte, all ...int) []byte {
	for _, n := range all {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return b
}

// bit is 1 for true.
func bit(x bool) byte {
	if x {
		return 1
	}
	return 0
}
