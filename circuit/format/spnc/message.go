package spnc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// word is the unit of Cap'n Proto, in bytes.
const word = 8

// maxSegments bounds the segments of a message, as other readers do.
const maxSegments = 512

// message is a message of Cap'n Proto: segments of words.
type message struct {
	segments [][]byte
	left     int // words of structs and lists that may still be read: those of the file, each once
}

// newMessage reads the table of segments at the start of a stream.
func newMessage(b []byte) (*message, error) {
	if len(b) < word {
		return nil, errors.New("the file ends within its table of segments; it is cut short")
	}
	count := uint64(binary.LittleEndian.Uint32(b)) + 1
	if count > maxSegments {
		return nil, fmt.Errorf("%d segments, at most %d are allowed", count, maxSegments)
	}
	head := (4 + 4*int(count) + word - 1) / word * word
	if len(b) < head {
		return nil, errors.New("the file ends within its table of segments; it is cut short")
	}
	m := &message{left: len(b) / word}
	at := uint64(head)
	for i := range int(count) {
		n := word * uint64(binary.LittleEndian.Uint32(b[4+4*i:]))
		if n > uint64(len(b))-at {
			return nil, fmt.Errorf("segment %d has %d bytes, of which the file has %d; it is cut short", i, n, uint64(len(b))-at)
		}
		m.segments = append(m.segments, b[at:at+n])
		at += n
	}
	return m, nil
}

// place is a word of a message.
type place struct {
	segment int
	at      int // in words
}

// words returns n words from a place on.
func (m *message) words(p place, n int) ([]byte, error) {
	if p.segment < 0 || p.segment >= len(m.segments) {
		return nil, fmt.Errorf("a pointer leads to segment %d of %d", p.segment, len(m.segments))
	}
	s := m.segments[p.segment]
	if p.at < 0 || n < 0 || p.at > len(s)/word || n > len(s)/word-p.at {
		return nil, fmt.Errorf("a pointer leads to words %d to %d of segment %d, which has %d", p.at, p.at+n, p.segment, len(s)/word)
	}
	return s[p.at*word : (p.at+n)*word], nil
}

// span returns the n words of a struct or a list. A file whose structs and lists are its own has
// words for all of them; where many pointers lead to one list, reading it for each could take the
// square of the file's size. Pointers do not count: each is a word of a struct that did.
func (m *message) span(p place, n int) ([]byte, error) {
	b, err := m.words(p, n)
	if err != nil {
		return nil, err
	}
	if m.left -= n; m.left < 0 {
		return nil, errors.New("more is pointed to than the file has: lists are shared")
	}
	return b, nil
}

// pointer is a pointer whose offset has been followed: to a struct or a list.
type pointer struct {
	to   place
	bits uint64 // as the pointer has them, without its offset
	null bool
}

func (p pointer) list() bool { return p.bits&3 == 1 }

// follow reads the pointer at a place, across segments where it is a far one.
func (m *message) follow(p place) (pointer, error) {
	b, err := m.words(p, 1)
	if err != nil {
		return pointer{}, err
	}
	bits := binary.LittleEndian.Uint64(b)
	if bits == 0 {
		return pointer{null: true}, nil
	}
	switch bits & 3 {
	case 0, 1:
		return pointer{place{p.segment, p.at + 1 + int(int32(bits))>>2}, bits, false}, nil
	case 2:
		pad := place{int(bits >> 32), int(uint32(bits) >> 3)}
		double := bits&4 != 0
		b, err := m.words(pad, 1)
		if err != nil {
			return pointer{}, err
		}
		there := binary.LittleEndian.Uint64(b)
		if !double {
			if there&3 > 1 {
				return pointer{}, errors.New("a far pointer leads to another one")
			}
			return pointer{place{pad.segment, pad.at + 1 + int(int32(there))>>2}, there, there == 0}, nil
		}
		tag, err := m.words(place{pad.segment, pad.at + 1}, 1)
		if err != nil {
			return pointer{}, err
		}
		bits := binary.LittleEndian.Uint64(tag)
		if there&7 != 2 || bits&3 > 1 {
			return pointer{}, errors.New("a far pointer leads to another one")
		}
		return pointer{place{int(there >> 32), int(uint32(there) >> 3)}, bits, false}, nil
	}
	return pointer{}, errors.New("a pointer of a kind that networks do not have")
}

// record is a struct: data and pointers.
type record struct {
	m        *message
	data     []byte
	pointers place
	count    int // of pointers
}

// record reads the struct that a pointer leads to.
func (m *message) record(p place, what string) (record, error) {
	ptr, err := m.follow(p)
	if err != nil {
		return record{}, fmt.Errorf("%s: %w", what, err)
	}
	if ptr.null || ptr.list() {
		return record{}, fmt.Errorf("%s is not there", what)
	}
	return m.body(ptr.to, ptr.bits, what)
}

func (m *message) body(at place, bits uint64, what string) (record, error) {
	data, count := int(bits>>32&0xffff), int(bits>>48)
	b, err := m.span(at, data+count)
	if err != nil {
		return record{}, fmt.Errorf("%s: %w", what, err)
	}
	return record{m, b[:data*word], place{at.segment, at.at + data}, count}, nil
}

// bytes returns n bytes of a struct's data; those that a shorter one lacks are zeros.
func (r record) bytes(at, n int) []byte {
	b := make([]byte, n)
	if at < len(r.data) {
		copy(b, r.data[at:])
	}
	return b
}

func (r record) u16(at int) uint16 { return binary.LittleEndian.Uint16(r.bytes(at, 2)) }
func (r record) i32(at int) int32  { return int32(binary.LittleEndian.Uint32(r.bytes(at, 4))) }
func (r record) f64(at int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(r.bytes(at, 8)))
}

// sub returns the struct behind pointer i.
func (r record) sub(i int, what string) (record, error) {
	if i >= r.count {
		return record{}, fmt.Errorf("%s is not there", what)
	}
	return r.m.record(place{r.pointers.segment, r.pointers.at + i}, what)
}

// Sizes of elements of lists, as pointers have them.
const (
	sizeByte   = 2
	sizeFour   = 4
	sizeEight  = 5
	sizeStruct = 7
)

// elements returns the bytes of the list behind pointer i and the number of its elements, whose
// size is that one; a list that is not there has none.
func (r record) elements(i int, size uint64, what string) (b []byte, n int, err error) {
	if i >= r.count {
		return nil, 0, nil
	}
	ptr, err := r.m.follow(place{r.pointers.segment, r.pointers.at + i})
	if err != nil || ptr.null {
		return nil, 0, err
	}
	if !ptr.list() || ptr.bits>>32&7 != size {
		return nil, 0, fmt.Errorf("%s is not a list of its elements", what)
	}
	n = int(ptr.bits >> 35)
	bytes := n * map[uint64]int{sizeByte: 1, sizeFour: 4, sizeEight: 8}[size]
	b, err = r.m.span(ptr.to, (bytes+word-1)/word)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", what, err)
	}
	return b[:bytes], n, nil
}

func (r record) text(i int, what string) (string, error) {
	b, n, err := r.elements(i, sizeByte, what)
	if err != nil || n == 0 {
		return "", err
	}
	s := string(b[:n-1]) // without the byte 0 at its end
	if !utf8.ValidString(s) {
		return "", fmt.Errorf("%s is %.40q, which is not UTF-8; write it in UTF-8", what, s)
	}
	return s, nil
}

func (r record) ints(i int, what string) ([]int32, error) {
	b, n, err := r.elements(i, sizeFour, what)
	out := make([]int32, n)
	for k := range out {
		out[k] = int32(binary.LittleEndian.Uint32(b[4*k:]))
	}
	return out, err
}

func (r record) floats(i int, what string) ([]float64, error) {
	b, n, err := r.elements(i, sizeEight, what)
	out := make([]float64, n)
	for k := range out {
		out[k] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*k:]))
	}
	return out, err
}

// records returns the structs of the list behind pointer i.
func (r record) records(i int, what string) ([]record, error) {
	if i >= r.count {
		return nil, nil
	}
	ptr, err := r.m.follow(place{r.pointers.segment, r.pointers.at + i})
	if err != nil || ptr.null {
		return nil, err
	}
	if !ptr.list() || ptr.bits>>32&7 != sizeStruct {
		return nil, fmt.Errorf("%s is not a list of structs", what)
	}
	words := int(ptr.bits >> 35)
	b, err := r.m.span(ptr.to, words+1)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	tag := binary.LittleEndian.Uint64(b)
	n, data, pointers := int(uint32(tag)>>2), int(tag>>32&0xffff), int(tag>>48)
	if tag&3 != 0 || data+pointers == 0 || n > words/(data+pointers) {
		return nil, fmt.Errorf("%s: %d structs of %d words in a list of %d", what, n, data+pointers, words)
	}
	out := make([]record, n)
	for k := range out {
		at := ptr.to.at + 1 + k*(data+pointers)
		out[k] = record{r.m, b[word*(1+k*(data+pointers)):][:data*word], place{ptr.to.segment, at + data}, pointers}
	}
	return out, nil
}
