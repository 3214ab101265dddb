package kerneltest

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/kernels"
)

// Numbers of each type: the smallest, the largest, and some that a type of the same
// size would read as others.
var (
	float32s = []float32{0, -1.5, math.MaxFloat32, math.SmallestNonzeroFloat32, float32(math.Inf(-1)), 0x1.fffffep100}
	float64s = []float64{0, -1.5, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(-1), 0x1.fffffffffffffp1000}
	int64s   = []int64{0, -1, math.MinInt64, math.MaxInt64, 1 << 40, -3}
	uint16s  = []uint16{0, 1, math.MaxUint16, 1 << 15, 258, 7}
	uint32s  = []uint32{0, 1, math.MaxUint32, 1 << 31, 1<<24 + 1, 7}
	int32s   = []int32{0, -1, math.MinInt32, math.MaxInt32, 1 << 24, -3}
	uint8s   = []uint8{0, 1, math.MaxUint8, 1 << 7, 2, 7}
)

// testBuffers allocates, writes and reads buffers of every type.
func testBuffers(t *testing.T, open Open, _ Depth) {
	d := open(t)
	defer d.Close()
	testBuffer(t, d, float32s)
	testBuffer(t, d, float64s)
	testBuffer(t, d, int64s)
	testBuffer(t, d, uint16s)
	testBuffer(t, d, uint32s)
	testBuffer(t, d, int32s)
	testBuffer(t, d, uint8s)
	t.Run("sizes", func(t *testing.T) { testSizes(t, d) })
	t.Run("owner", func(t *testing.T) { testOwner(t, d, open) })
	t.Run("module", func(t *testing.T) { testUnknownModule(t, d) })
}

// testBuffer tests buffers of one type by some numbers of it.
func testBuffer[T kernels.Element](t *testing.T, d kernels.Device, numbers []T) {
	kind := kernels.TypeOf[T]()
	t.Run(kind.String(), func(t *testing.T) {
		ctx := t.Context()
		n := len(numbers)
		buf, err := d.Alloc(ctx, kind, 3*n)
		if err != nil {
			t.Fatal(err)
		}
		if buf.DType() != kind || buf.Len() != 3*n {
			t.Fatalf("Alloc of %d %v gives %d %v", 3*n, kind, buf.Len(), buf.DType())
		}
		want := make([]T, 3*n)
		check := func(what string) {
			t.Helper()
			got := slices.Repeat(numbers[1:2], 3*n)
			if err := d.Read(ctx, got, buf, 0); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s: the buffer holds %v, want %v", what, got, want)
			}
		}
		write := func(offset int, s []T) {
			t.Helper()
			if err := d.Write(ctx, buf, offset, s); err != nil {
				t.Fatal(err)
			}
			copy(want[offset:], s)
		}
		check("Alloc")
		write(0, numbers)
		write(2*n, numbers)
		check("the first and the last third")
		write(n+1, numbers[n-1:])
		write(3*n-1, numbers[1:2])
		write(3*n, nil)
		check("single elements")
		part := make([]T, n)
		if err := d.Read(ctx, part, buf, n); err != nil || !slices.Equal(part, want[n:2*n]) {
			t.Errorf("the second third holds %v, want %v (%v)", part, want[n:2*n], err)
		}
		if err := d.Read(ctx, []T{}, buf, 3*n); err != nil {
			t.Errorf("nothing from the end: %v", err)
		}
		type other struct{ x T }
		for name, err := range map[string]error{
			"a negative offset":     d.Write(ctx, buf, -1, numbers),
			"past the end":          d.Write(ctx, buf, 2*n+1, numbers),
			"far past the end":      d.Read(ctx, part, buf, math.MaxInt),
			"the smallest offset":   d.Read(ctx, part, buf, math.MinInt),
			"numbers of other type": d.Write(ctx, buf, 0, another(kind)),
			"to other type":         d.Read(ctx, another(kind), buf, 0),
			"no slice":              d.Write(ctx, buf, 0, numbers[0]),
			"no numbers":            d.Write(ctx, buf, 0, []other{{numbers[0]}}),
			"nil":                   d.Read(ctx, nil, buf, 0),
		} {
			if !errors.Is(err, kernels.ErrDevice) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v, want ErrDevice in one line", name, err)
			}
		}
		check("calls that are refused")
		buf.Free()
		buf.Free()
		if buf.DType() != kind || buf.Len() != 0 {
			t.Errorf("after Free there are %d elements of %v", buf.Len(), buf.DType())
		}
		if err := d.Write(ctx, buf, 0, numbers); !errors.Is(err, kernels.ErrDevice) {
			t.Errorf("a write after Free: %v, want ErrDevice", err)
		}
	})
}

// another returns two elements of a type of the same size where there is one.
func another(t kernels.DType) any {
	switch t {
	case kernels.Float32, kernels.Int32:
		return []uint32{1, 2}
	case kernels.Uint32:
		return []int32{1, 2}
	case kernels.Float64:
		return []int64{1, 2}
	case kernels.Int64:
		return []float64{1, 2}
	case kernels.Uint16:
		return []uint8{1, 2}
	}
	return []uint16{1, 2}
}

// testSizes allocates nothing, and what cannot be.
func testSizes(t *testing.T, d kernels.Device) {
	ctx := t.Context()
	for _, kind := range kernels.DTypes() {
		none, err := d.Alloc(ctx, kind, 0)
		if err != nil || none.Len() != 0 || none.DType() != kind {
			t.Errorf("no elements of %v: %v", kind, err)
		} else {
			none.Free()
		}
		if _, err := d.Alloc(ctx, kind, -1); !errors.Is(err, kernels.ErrDevice) {
			t.Errorf("-1 elements of %v: %v, want ErrDevice", kind, err)
		}
		for _, n := range []int{1 << 48, 1 << 61, 1 << 62, math.MaxInt} { // some are 0 bytes modulo 2^64
			if _, err := d.Alloc(ctx, kind, n); !errors.Is(err, kernels.ErrMemory) {
				t.Errorf("%d elements of %v: %v, want ErrMemory", n, kind, err)
			}
		}
	}
	for _, kind := range []kernels.DType{kernels.DType(len(kernels.DTypes())), 255} {
		if _, err := d.Alloc(ctx, kind, 1); !errors.Is(err, kernels.ErrDevice) || errors.Is(err, kernels.ErrMemory) {
			t.Errorf("%v: %v, want ErrDevice", kind, err)
		}
	}
}

// testOwner wants a device to refuse the buffers of another.
func testOwner(t *testing.T, d kernels.Device, open Open) {
	ctx := t.Context()
	other := open(t)
	defer other.Close()
	buf, err := other.Alloc(ctx, kernels.Int32, 4)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Write(ctx, buf, 0, int32s[:4]); !errors.Is(err, kernels.ErrDevice) {
		t.Errorf("a write to a buffer of another device: %v, want ErrDevice", err)
	}
	got := make([]int32, 4)
	if err := d.Read(ctx, got, buf, 0); !errors.Is(err, kernels.ErrDevice) {
		t.Errorf("a read from a buffer of another device: %v, want ErrDevice", err)
	}
	if err := d.Read(ctx, got, nil, 0); !errors.Is(err, kernels.ErrDevice) {
		t.Errorf("a read from no buffer: %v, want ErrDevice", err)
	}
	buf.Free()
}

// strange is a module of a kind that no device loads.
type strange struct{}

func (strange) ModuleKind() string { return "strange" }

// testUnknownModule wants a device to say what it loads instead.
func testUnknownModule(t *testing.T, d kernels.Device) {
	p, err := d.Load(t.Context(), strange{})
	if p != nil || !errors.Is(err, kernels.ErrDevice) || strings.Contains(err.Error(), "\n") ||
		!strings.Contains(err.Error(), `"strange"`) || !strings.Contains(err.Error(), `"tensor"`) {
		t.Errorf("a module of kind strange: %v, %v; want ErrDevice and the kinds that there are, in one line", p, err)
	}
}
