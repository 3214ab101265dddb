package main

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// memory returns the bytes of main memory that this process may use and those
// that are available now; 0 where the system does not tell. A cgroup's limit
// counts where it is lower.
func memory() (total, available uint64) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.Fields(lines.Text()) // MemTotal: 16300000 kB
		if len(words) < 2 {
			continue
		}
		kib, err := strconv.ParseUint(words[1], 10, 54)
		if err != nil {
			continue
		}
		switch words[0] {
		case "MemTotal:":
			total = kib << 10
		case "MemAvailable:":
			available = kib << 10
		}
	}
	limit, ok := cgroupBytes("memory.max")
	if !ok || limit >= total {
		return total, available
	}
	used, _ := cgroupBytes("memory.current")
	used -= min(used, cgroupCache())
	return limit, min(available, limit-min(used, limit))
}

// cgroupCache returns the bytes of files that the cgroup keeps in memory, which
// are given up when memory is short.
func cgroupCache() uint64 {
	text, err := os.ReadFile("/sys/fs/cgroup/memory.stat")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(line, "file "); ok {
			bytes, err := strconv.ParseUint(strings.TrimSpace(n), 10, 64)
			if err != nil {
				return 0
			}
			return bytes
		}
	}
	return 0
}

// cgroupBytes reads a number of the cgroup (version 2) that a container sees.
func cgroupBytes(name string) (uint64, bool) {
	text, err := os.ReadFile("/sys/fs/cgroup/" + name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// diskFree returns the bytes that may still be written below dir, 0 if unknown.
func diskFree(dir string) uint64 {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0
	}
	return s.Bavail * uint64(s.Bsize)
}
