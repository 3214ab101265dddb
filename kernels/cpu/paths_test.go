package cpu_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/kernels/cpu/micro"
)

// TestKernelPaths opens the device with each of its paths by name.
func TestKernelPaths(t *testing.T) {
	t.Setenv(micro.Variable, "")
	describe := func(set *micro.Set) kernels.Info {
		d, err := cpu.Open(cpu.Options{Threads: 1, Set: set})
		if err != nil {
			t.Fatal(err)
		}
		return d.Info()
	}
	paths := cpu.KernelPaths()
	if !slices.Contains(paths, "generic") {
		t.Errorf("paths %v", paths)
	}
	for i, name := range paths {
		set, err := cpu.KernelPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := describe(set); got.KernelPath != name {
			t.Errorf("%s opens %s", name, got.KernelPath)
		} else if best := describe(nil); i == 0 && got != best {
			t.Errorf("the first path is %+v, the best %+v", got, best)
		}
	}
	_, err := cpu.KernelPath("mmx")
	if !errors.Is(err, kernels.ErrDevice) || !errors.Is(err, micro.ErrSet) || strings.Contains(err.Error(), "\n") {
		t.Errorf("mmx: %v", err)
	}
}
