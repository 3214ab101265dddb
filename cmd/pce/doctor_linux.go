package main

import (
	"bufio"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
)

// memory returns the bytes of main memory that this process may use and those
// that are available now; a total of 0 where the system does not tell. The limit
// of a cgroup counts where it is lower.
func memory() (total, available uint64) { return memoryIn(os.DirFS("/")) }

// memoryIn is memory for the file system below root: what the kernel says, bounded by the
// control groups that this process is in. It returns zeros where the kernel does not say. Of a kernel that says how much there is and
// not how much is available, as WSL 1, all counts as available: 0 would refuse every run.
func memoryIn(root fs.FS) (total, available uint64) {
	f, err := root.Open("proc/meminfo")
	if err != nil {
		return 0, 0
	}
	defer f.Close()
	available = math.MaxUint64
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
	available = min(available, total)
	for _, g := range memoryGroups(root) {
		limit, room := g.memory(root)
		total, available = min(total, limit), min(available, room)
	}
	return total, available
}

// memoryGroup is a cgroup that may limit this process.
type memoryGroup struct {
	dir                string
	limit, used, cache string // names of its files, and of the line of memory.stat
}

// memoryGroups lists the cgroup of this process and all above it, of either
// version. A container often sees its own cgroup as the top, under a path that
// is not there; then the top alone counts.
func memoryGroups(root fs.FS) []memoryGroup {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		text = []byte("0::/\n")
	}
	var groups []memoryGroup
	for line := range strings.Lines(string(text)) { // 5:cpu,memory:/a/b, or 0::/a/b for version 2
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) < 3 {
			continue
		}
		g := memoryGroup{dir: "sys/fs/cgroup", limit: "memory.max", used: "memory.current", cache: "file "}
		if parts[1] != "" {
			if !strings.Contains(","+parts[1]+",", ",memory,") {
				continue
			}
			g = memoryGroup{dir: "sys/fs/cgroup/memory", limit: "memory.limit_in_bytes", used: "memory.usage_in_bytes", cache: "total_cache "}
		}
		top := g.dir
		for p := path.Clean("/" + parts[2]); ; p = path.Dir(p) { // clean: never above the top
			g.dir = path.Join(top, p)
			groups = append(groups, g)
			if p == "/" {
				break
			}
		}
	}
	return groups
}

// memory returns a cgroup's limit and what is left of it; files that it keeps in
// memory are given up when memory is short.
func (g memoryGroup) memory(root fs.FS) (limit, room uint64) {
	limit, ok := readUint(root, path.Join(g.dir, g.limit))
	if !ok { // not there, or "max"
		return math.MaxUint64, math.MaxUint64
	}
	used, _ := readUint(root, path.Join(g.dir, g.used))
	used -= min(used, g.cached(root))
	return limit, limit - min(used, limit)
}

// cached returns the bytes of files that the cgroup keeps in memory.
func (g memoryGroup) cached(root fs.FS) uint64 {
	text, err := fs.ReadFile(root, path.Join(g.dir, "memory.stat"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(line, g.cache); ok {
			bytes, err := strconv.ParseUint(strings.TrimSpace(n), 10, 64)
			if err != nil {
				return 0
			}
			return bytes
		}
	}
	return 0
}

// readUint reads a file that holds one number.
func readUint(root fs.FS, name string) (uint64, bool) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// diskFree returns the bytes that may still be written below dir, and whether the system tells.
func diskFree(dir string) (bytes uint64, known bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true
}
