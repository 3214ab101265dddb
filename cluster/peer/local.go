package peer

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// errFar means that a member is reached by TCP only.
var errFar = errors.New("not by a Unix socket")

// maxSocketPath is how long the path of a socket may be: sun_path holds a zero too.
const maxSocketPath = 107

// place is where a Unix socket is. Containers of one host share the boot, and
// hosts have the same paths: it is the same socket when all is equal.
type place struct {
	boot        string // the kernel's boot_id
	device, ino uint64 // of the file
	path        string
}

// String is the form in Endpoint.Local: BOOT:DEVICE:INODE:PATH.
func (at place) String() string {
	return fmt.Sprintf("%s:%x:%x:%s", at.boot, at.device, at.ino, at.path)
}

// parsePlace reads what String made; others may have written it.
func parsePlace(s string) (at place, err error) {
	bad := fmt.Errorf("%w: %.200q does not name one", errFar, s)
	parts := strings.SplitN(s, ":", 4)
	if len(parts) != 4 || parts[0] == "" || len(parts[3]) > maxSocketPath || !filepath.IsAbs(parts[3]) {
		return at, bad
	}
	at.boot, at.path = parts[0], parts[3]
	if at.device, err = strconv.ParseUint(parts[1], 16, 64); err != nil {
		return at, bad
	}
	if at.ino, err = strconv.ParseUint(parts[2], 16, 64); err != nil {
		return at, bad
	}
	return at, nil
}

// near returns the path of the Unix socket that local names, when it is one of
// this host that this process sees, or why there is none.
func near(local string) (string, error) {
	if local == "" {
		return "", fmt.Errorf("%w: it names none", errFar)
	}
	at, err := parsePlace(local)
	if err != nil {
		return "", err
	}
	boot, err := bootID()
	if err != nil {
		return "", fmt.Errorf("%w: %w", errFar, err)
	}
	if at.boot != boot {
		return "", fmt.Errorf("%w: it is on another host", errFar)
	}
	seen, err := placeOf(at.path)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errFar, err)
	}
	if seen != at {
		return "", fmt.Errorf("%w: another file is at %s here", errFar, at.path)
	}
	return at.path, nil
}
