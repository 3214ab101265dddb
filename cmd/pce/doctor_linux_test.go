package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pce-engine/pce/kernels/cpu/micro"
)

// TestCPUFeatures compares the vector extensions with those that Linux says this processor has.
func TestCPUFeatures(t *testing.T) {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	_, line, _ := strings.Cut(string(text), "\nflags")
	line, _, _ = strings.Cut(line, "\n")
	flags := strings.Fields(strings.ReplaceAll(line, "avx512_", "avx512"))
	if !slices.Contains(flags, "avx512f") || len(micro.All()) == 1 {
		t.Skip("SKIPPED: wants AVX-512, and a program with assembly")
	}
	names := cpuFeatures()
	for _, f := range []string{"avx2", "fma", "avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512vbmi", "avx512bf16", "avx512fp16", "gfni"} {
		if slices.Contains(names, f) != slices.Contains(flags, f) {
			t.Errorf("%s: listed is %t, Linux has it is %t", f, slices.Contains(names, f), slices.Contains(flags, f))
		}
	}
}

// TestMemory gives the reader file systems as containers and batch systems show
// them. Sizes are in bytes; /proc/meminfo says 1000 MiB, 800 of them available.
func TestMemory(t *testing.T) {
	const mib = 1 << 20
	for name, tc := range map[string]struct {
		files            map[string]string
		total, available uint64
	}{
		"no cgroups": {nil, 1000 * mib, 800 * mib},
		"version 2, own namespace": {map[string]string{
			"proc/self/cgroup":             "0::/\n",
			"sys/fs/cgroup/memory.max":     "104857600\n",
			"sys/fs/cgroup/memory.current": "52428800\n",
			"sys/fs/cgroup/memory.stat":    "anon 10\nfile 10485760\n",
		}, 100 * mib, 60 * mib},
		"version 2, no limit": {map[string]string{
			"proc/self/cgroup":           "0::/a\n",
			"sys/fs/cgroup/a/memory.max": "max\n",
		}, 1000 * mib, 800 * mib},
		"version 2, limit above": {map[string]string{
			"proc/self/cgroup":                  "0::/job/step\n",
			"sys/fs/cgroup/job/memory.max":      "209715200\n",
			"sys/fs/cgroup/job/memory.current":  "10485760\n",
			"sys/fs/cgroup/job/step/memory.max": "max\n",
		}, 200 * mib, 190 * mib},
		"version 2, path of the host": {map[string]string{
			"proc/self/cgroup":         "0::/kubepods/pod1/abc\n",
			"sys/fs/cgroup/memory.max": "104857600\n",
		}, 100 * mib, 100 * mib},
		"version 2, above the machine": {map[string]string{
			"proc/self/cgroup":         "0::/\n",
			"sys/fs/cgroup/memory.max": "10485760000\n",
		}, 1000 * mib, 800 * mib},
		"version 1": {map[string]string{
			"proc/self/cgroup": "7:cpu,cpuacct:/x\n5:memory:/slurm/job_7\n0::/unrelated\n",
			"sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes": "104857600\n",
			"sys/fs/cgroup/memory/slurm/job_7/memory.usage_in_bytes": "104857600\n",
			"sys/fs/cgroup/memory/slurm/job_7/memory.stat":           "cache 5\ntotal_cache 20971520\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":             "9223372036854771712\n",
		}, 100 * mib, 20 * mib},
		"used above the limit": {map[string]string{
			"sys/fs/cgroup/memory.max":     "104857600\n",
			"sys/fs/cgroup/memory.current": "204857600\n",
		}, 100 * mib, 0},
		"damaged": {map[string]string{
			"proc/self/cgroup":         "0::/../../etc\nx\n",
			"sys/fs/cgroup/memory.max": "-1\n",
		}, 1000 * mib, 800 * mib},
	} {
		root := fstest.MapFS{"proc/meminfo": {Data: []byte("MemTotal: 1024000 kB\nMemFree: 1 kB\nMemAvailable: 819200 kB\nbroken\n")}}
		for file, text := range tc.files {
			root[file] = &fstest.MapFile{Data: []byte(text)}
		}
		if total, available := memoryIn(root); total != tc.total || available != tc.available {
			t.Errorf("%s: %d and %d, want %d and %d", name, total, available, tc.total, tc.available)
		}
	}
	old := fstest.MapFS{"proc/meminfo": {Data: []byte("MemTotal: 1024000 kB\nMemFree: 1 kB\n")}}
	if total, available := memoryIn(old); total != 1000*mib || available != 1000*mib {
		t.Errorf("of a kernel that does not say what is available: %d and %d, want all", total, available)
	}
	if total, available := memoryIn(fstest.MapFS{}); total != 0 || available != 0 {
		t.Errorf("without /proc: %d and %d, want zeros", total, available)
	}
	if total, available := memory(); total == 0 || available == 0 || available > total {
		t.Errorf("this machine: %d and %d", total, available)
	}
}
