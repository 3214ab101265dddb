package ndarray

import (
	"encoding/binary"
	"fmt"
	"io"
)

var idxTypes = map[byte]DType{
	0x08: {'u', 1, true},
	0x09: {'i', 1, true},
	0x0B: {'i', 2, true},
	0x0C: {'i', 4, true},
	0x0D: {'f', 4, true},
	0x0E: {'f', 8, true},
}

// OpenIDX reads the header of an idx file.
func OpenIDX(src io.Reader) (*Reader, error) {
	var magic [4]byte
	if _, err := io.ReadFull(src, magic[:]); err != nil {
		return nil, fmt.Errorf("ends in its header; the file is cut short")
	}
	d, ok := idxTypes[magic[2]]
	if magic[0] != 0 || magic[1] != 0 || !ok || magic[3] == 0 || magic[3] > 8 {
		return nil, fmt.Errorf("does not begin like an idx file but with bytes % x; is it another kind of file?", magic[:])
	}
	shape := make([]int, magic[3])
	for i := range shape {
		var n [4]byte
		if _, err := io.ReadFull(src, n[:]); err != nil {
			return nil, fmt.Errorf("ends in its header; the file is cut short")
		}
		shape[i] = int(binary.BigEndian.Uint32(n[:]))
	}
	return newReader(src, d, shape, false)
}
