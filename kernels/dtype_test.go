package kernels_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/pce-engine/pce/kernels"
)

// TestDTypes compares each type with the Go type of its name.
func TestDTypes(t *testing.T) {
	seen := map[kernels.DType]bool{}
	seen[check[float32](t, "float32")] = true
	seen[check[float64](t, "float64")] = true
	seen[check[int64](t, "int64")] = true
	seen[check[uint16](t, "uint16")] = true
	seen[check[uint32](t, "uint32")] = true
	seen[check[int32](t, "int32")] = true
	seen[check[uint8](t, "uint8")] = true
	if len(seen) != len(kernels.DTypes()) {
		t.Errorf("%d types have a Go type, there are %d", len(seen), len(kernels.DTypes()))
	}
	for _, kind := range kernels.DTypes() {
		if !seen[kind] {
			t.Errorf("%v has no Go type", kind)
		}
	}
}

func check[T kernels.Element](t *testing.T, name string) kernels.DType {
	t.Helper()
	kind := kernels.TypeOf[T]()
	var zero T
	if kind.String() != name || kind.Bytes() != int(unsafe.Sizeof(zero)) {
		t.Errorf("%T is %v of %d bytes", zero, kind, kind.Bytes())
	}
	s := []T{1, 2, 3}
	got, n, memory, ok := kernels.View(s)
	if !ok || got != kind || n != 3 || len(memory) != 3*kind.Bytes() || unsafe.Pointer(&memory[0]) != unsafe.Pointer(&s[0]) {
		t.Errorf("View of %v gives %d %v in %d bytes, %v", s, n, got, len(memory), ok)
	}
	return kind
}

// TestUnknownType wants a type that nobody defined to be found at once.
func TestUnknownType(t *testing.T) {
	unknown := kernels.DType(len(kernels.DTypes()))
	if s := unknown.String(); s != fmt.Sprintf("DType(%d)", unknown) {
		t.Errorf("its name is %s", s)
	}
	defer func() {
		if s, _ := recover().(string); !strings.HasPrefix(s, "BUG: ") {
			t.Errorf("Bytes of %v panics with %q, want BUG", unknown, s)
		}
	}()
	t.Errorf("Bytes of %v is %d", unknown, unknown.Bytes())
}

// TestSize has the last size that is allowed, and the first that is not.
func TestSize(t *testing.T) {
	for _, kind := range kernels.DTypes() {
		last := 1<<48/kind.Bytes() - 1 // an address space has 48 bits
		if n, err := kernels.Size(kind, last); err != nil || n != int64(last)*int64(kind.Bytes()) {
			t.Errorf("%d %v: %d, %v", last, kind, n, err)
		}
		if _, err := kernels.Size(kind, last+1); !errors.Is(err, kernels.ErrMemory) {
			t.Errorf("%d %v: %v, want ErrMemory", last+1, kind, err)
		}
	}
}
