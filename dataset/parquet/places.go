package parquet

import (
	"encoding/binary"
	"fmt"
)

// plain are integers of 32 bits one after the other.
type plain struct{ rest []byte }

func (p *plain) next() (int32, error) {
	if len(p.rest) < 4 {
		return 0, errCut
	}
	x := int32(binary.LittleEndian.Uint32(p.rest))
	p.rest = p.rest[4:]
	return x, nil
}

// places are numbers of a dictionary by their places, in runs: of one place, or packed, the least bit of a byte first.
type places struct {
	dictionary []int32
	width      uint64 // bits of a place
	rest       []byte // from the next run on
	left       uint64 // places of the run
	packed     []byte // the run, nil where it is of one place
	at         uint64 // bit of its next place
	one        uint64
}

func newPlaces(data []byte, dictionary []int32) (*places, error) {
	if data[0] > 32 { // there is a byte, as in every page with values
		return nil, fmt.Errorf("places of %d bits", data[0])
	}
	return &places{dictionary: dictionary, width: uint64(data[0]), rest: data[1:]}, nil
}

func (p *places) next() (int32, error) {
	for p.left == 0 {
		if err := p.run(); err != nil {
			return 0, err
		}
	}
	p.left--
	place := p.one
	if p.packed != nil {
		var window [8]byte
		if at := p.at / 8; at < uint64(len(p.packed)) {
			copy(window[:], p.packed[at:])
		} else if p.width > 0 {
			return 0, errCut
		}
		place = binary.LittleEndian.Uint64(window[:]) >> (p.at % 8) & (1<<p.width - 1)
		p.at += p.width
	}
	if place >= uint64(len(p.dictionary)) {
		return 0, fmt.Errorf("place %d of a dictionary of %d", place, len(p.dictionary))
	}
	return p.dictionary[place], nil
}

// run begins the next run. What is packed may end before the run does, which is of a multiple of 8 places.
func (p *places) run() error {
	head, n := binary.Uvarint(p.rest)
	if n <= 0 {
		return errCut
	}
	p.rest = p.rest[n:]
	if head&1 != 0 {
		groups := head >> 1
		if groups > uint64(len(p.rest))+1 && p.width > 0 || groups > 1<<32 {
			return errCut
		}
		size := min(groups*p.width, uint64(len(p.rest)))
		p.left, p.packed, p.at, p.one, p.rest = 8*groups, p.rest[:size:size], 0, 0, p.rest[size:]
		return nil
	}
	bytes := int(p.width+7) / 8
	if len(p.rest) < bytes {
		return errCut
	}
	var one [8]byte
	copy(one[:], p.rest[:bytes])
	p.left, p.packed, p.one, p.rest = head>>1, nil, binary.LittleEndian.Uint64(one[:]), p.rest[bytes:]
	return nil
}
