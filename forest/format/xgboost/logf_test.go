package xgboost

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"testing"
)

// TestLogf: the bits are those of logf of the GNU C library 2.36, which is the same with and without fused multiplication. The first
// cases are numbers whose logarithm it does not round to nearest; the sum is over one in 4,099 of all positive numbers.
func TestLogf(t *testing.T) {
	for x, want := range map[uint32]uint32{
		0x00002447: 0xc2bc48fd, 0x0002092c: 0xc2b6f491, 0x008178ac: 0xc2aea675, 0x0782029e: 0xc29b3bda, 0x0f809afc: 0xc2851327,
		0x17808837: 0xc25dca5e, 0x1f80a81d: 0xc2316cda, 0x2781f826: 0xc20505ef, 0x2f818054: 0xc1b15a36, 0x37808aff: 0xc13160c1,
		0x4700a725: 0x41266fce, 0x4f012a4e: 0x41abf917, 0x570168f6: 0x42025b02, 0x5f01f7f3: 0x422ebbf1, 0x67015e39: 0x425b13b9,
		0x6f01a00c: 0x4283b924, 0x7700dd2c: 0x4299e463, 0x7f015f0c: 0x42b014a9,
		0x3f800000: 0, 0: 0xff800000, 0x7f800000: 0x7f800000,
	} {
		if got := math.Float32bits(logf(math.Float32frombits(x))); got != want {
			t.Errorf("logf(%v) has the bits %08x, want %08x", math.Float32frombits(x), got, want)
		}
	}
	if got := logf(-1); got == got {
		t.Errorf("logf(-1) is %v, want NaN", got)
	}
	sum := fnv.New64a()
	for x := uint32(1); x < 0x7f800000; x += 4099 {
		var b [4]byte
		binary.LittleEndian.PutUint32(b[:], math.Float32bits(logf(math.Float32frombits(x))))
		sum.Write(b[:])
	}
	if got := sum.Sum64(); got != 0xbcc4742e67c2253b {
		t.Errorf("the sum over all numbers is %#x, want %#x", got, uint64(0xbcc4742e67c2253b))
	}
}

// TestMargins: margins are those that XGBoost 1.7.4 gives for base scores, and writing finds a base score with the margin.
func TestMargins(t *testing.T) {
	for _, c := range []struct {
		link       inverse
		base, want float32
	}{
		{logarithm, 0.975, -0.0253177825}, {logarithm, 0.824, -0.19358474}, {logarithm, 1.022, 0.0217614491}, {logarithm, 1.013, 0.0129162371},
		{logit, 0.148, -1.75037432}, {logit, 0.491, -0.0360039622}, {logit, 0.74, 1.04596853}, {logit, 0.498, -0.00799999852},
		{same, 0.7, 0.7},
	} {
		if got := c.link.margin(c.base); got != c.want {
			t.Errorf("link %d: the margin of %v is %v, want %v", c.link, c.base, got, c.want)
		}
		if base, ok := c.link.base(c.want); !ok || c.link.margin(base) != c.want {
			t.Errorf("link %d: the base score of %v is %v, %v", c.link, c.want, base, ok)
		}
	}
}
