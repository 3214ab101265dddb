package format

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"unsafe"

	"github.com/pce-engine/pce/forest"
)

// MaxBytes is the size of the largest file, unpacked, that Open and Decode read.
const MaxBytes = 1 << 30

// ErrModel means that a file is not a valid forest.
var ErrModel = errors.New("forest/format: bad model")

// UnknownError says that no registered format recognises a file.
type UnknownError struct {
	Tried []string // the names of the formats
}

func (e *UnknownError) Error() string {
	tried := strings.Join(e.Tried, ", ")
	if tried == "" {
		tried = "none, for the program registers none"
	}
	return "its first bytes are those of no known forest (tried: " + tried + "); give a model file, or get it again if it was cut short"
}

// Open reads the forest at path, whichever registered format it has, gzip included.
func Open(path string) (*forest.Forest, error) {
	b, free, err := readFile(path)
	if err != nil {
		return nil, err
	}
	defer free()
	f, err := decodeFile(b)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrModel, path, err)
	}
	return f, nil
}

// decodeFile is decode for bytes that may be mapped. A file that another program cuts short meanwhile has no pages there
// any more, which is an error and not the end of the program.
func decodeFile(b []byte) (f *forest.Forest, err error) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if r := recover(); r != nil {
			fault, ok := r.(interface{ Addr() uintptr })
			first := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
			if !ok || fault.Addr() < first || fault.Addr() >= first+uintptr(len(b)) {
				panic(r)
			}
			f, err = nil, errors.New("the file became shorter while it was read; try again")
		}
	}()
	return decode(b, MaxBytes)
}

// Recognise returns the name of the format of the file at path, told by its first
// bytes, and false if no registered format recognises it or it cannot be read.
func Recognise(path string) (string, bool) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return "", false // opening a pipe waits for its writer, and what was read of it would be lost
	}
	f, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, HeadBytes))
	if err != nil {
		return "", false
	}
	if packed(head) {
		z, err := gzip.NewReader(bytes.NewReader(head))
		if err != nil {
			return "", false
		}
		unpacked := make([]byte, HeadBytes)
		n, _ := io.ReadFull(z, unpacked) // the packed bytes are cut short
		head = unpacked[:n]
	}
	for _, f := range formats.All() {
		if f.Recognises(head) {
			return f.Name, true
		}
	}
	return "", false
}

func packed(head []byte) bool { return bytes.HasPrefix(head, []byte{0x1f, 0x8b}) }

// readFile returns the bytes of a file, and what is to be called once they are not needed: a regular file is mapped, as memory
// that is read once costs more than reading.
func readFile(path string) (b []byte, free func(), err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("forest/format: %w", err)
	}
	defer f.Close()
	hint := int64(0)
	if info, err := f.Stat(); err == nil {
		if info.IsDir() {
			return nil, nil, fmt.Errorf("%w: %s: a directory; name the model file in it", ErrModel, path)
		}
		hint = info.Size()
		if info.Mode().IsRegular() && hint > 0 && hint <= MaxBytes {
			if b, free := mapped(f, int(hint)); b != nil {
				return b, free, nil
			}
		}
	}
	if b, err = slurp(f, hint, MaxBytes); err != nil {
		return nil, nil, fmt.Errorf("%w: %s: %w", ErrModel, path, err)
	}
	return b, func() {}, nil
}

// Decode reads a forest that is not a file of its own.
func Decode(file []byte) (*forest.Forest, error) {
	f, err := decode(file, MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	return f, nil
}

// decode unpacks at most limit bytes.
func decode(file []byte, limit int64) (*forest.Forest, error) {
	if packed(file) {
		z, err := gzip.NewReader(bytes.NewReader(file))
		if err == nil {
			file, err = slurp(z, 4*int64(len(file)), limit)
		}
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
	}
	head := file[:min(len(file), HeadBytes)]
	for _, f := range formats.All() {
		if !f.Recognises(head) {
			continue
		}
		got, err := f.Decode(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		return got, nil
	}
	return nil, &UnknownError{Tried: Names()}
}

// slurp reads all of r, about hint bytes and at most limit.
func slurp(r io.Reader, hint, limit int64) ([]byte, error) {
	var b bytes.Buffer // grows by doubling, where io.ReadAll would copy a large file many times
	b.Grow(int(min(max(0, hint), limit)) + bytes.MinRead)
	if _, err := b.ReadFrom(io.LimitReader(r, limit+1)); err != nil {
		return nil, err
	}
	if int64(b.Len()) > limit {
		return nil, fmt.Errorf("more than %d bytes; no forest may be larger", limit)
	}
	return b.Bytes(), nil
}
