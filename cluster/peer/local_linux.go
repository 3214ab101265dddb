package peer

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// bootID tells this host from others, until it starts again.
var bootID = sync.OnceValues(func() (string, error) {
	const file = "/proc/sys/kernel/random/boot_id"
	b, err := os.ReadFile(file)
	id := strings.TrimSpace(string(b))
	if err == nil && (id == "" || strings.Contains(id, ":")) {
		err = fmt.Errorf("%s says %q", file, id)
	}
	return id, err
})

// placeOf says where a socket of this user is.
func placeOf(path string) (at place, err error) {
	var s unix.Stat_t
	if err := unix.Lstat(path, &s); err != nil {
		return at, fmt.Errorf("%s: %w", path, err)
	}
	if s.Mode&unix.S_IFMT != unix.S_IFSOCK || s.Uid != uint32(os.Geteuid()) {
		return at, fmt.Errorf("%s is not a socket of this user", path)
	}
	at = place{device: uint64(s.Dev), ino: s.Ino, path: path}
	at.boot, err = bootID()
	return at, err
}

// listenLocal listens on a Unix socket in a directory of this member's own in
// dir, or below os.TempDir if the path is too long otherwise. The name of the
// socket is new in each life, for it holds a part of the key's fingerprint.
func listenLocal(dir, id, fingerprint string) (*net.UnixListener, place, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, place{}, err
	}
	whose := sha256.Sum256([]byte(id))
	own, name := filepath.Join(dir, fmt.Sprintf("peer-%x", whose[:4])), fingerprint[:16]
	if len(own)+1+len(name) > maxSocketPath {
		whose = sha256.Sum256([]byte(own + "\x00" + id))
		own = filepath.Join(os.TempDir(), fmt.Sprintf("pce-%d-%x", os.Geteuid(), whose[:8]))
	}
	path := filepath.Join(own, name)
	if len(path) > maxSocketPath {
		return nil, place{}, fmt.Errorf("the path %s has more than %d bytes; set TMPDIR to a shorter one", path, maxSocketPath)
	}
	if err := ownDir(own); err != nil {
		return nil, place{}, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		os.Remove(own)
		return nil, place{}, err
	}
	at, err := placeOf(path)
	if err != nil {
		closeLocal(listener)
		return nil, place{}, err
	}
	return listener, at, nil
}

// ownDir makes a directory that no other process uses, and clears it of sockets
// that have no listener any more.
func ownDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	var s unix.Stat_t
	if err := unix.Lstat(dir, &s); err != nil {
		return err
	}
	if s.Mode&unix.S_IFMT != unix.S_IFDIR || s.Uid != uint32(os.Geteuid()) || s.Mode&0o777 != 0o700 {
		return fmt.Errorf("%s is not a directory of this user with mode 0700; remove it", dir)
	}
	old, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range old {
		path := filepath.Join(dir, f.Name())
		if f.Type() != os.ModeSocket {
			continue
		}
		if conn, err := net.Dial("unix", path); err == nil {
			conn.Close()
		} else if errors.Is(err, unix.ECONNREFUSED) {
			os.Remove(path)
		}
	}
	return nil
}

// closeLocal closes a listener of listenLocal, and removes what that made.
func closeLocal(l *net.UnixListener) {
	path := l.Addr().String()
	l.Close()                     // removes the socket
	os.Remove(filepath.Dir(path)) // unless there are others
}

// sameUser checks that the process at the other end of a Unix socket, or the one
// that listened there, is of this user.
func sameUser(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var other *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		other, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return err
	}
	if failed != nil {
		return os.NewSyscallError("getsockopt", failed)
	}
	if me := uint32(os.Geteuid()); other.Uid != me {
		return fmt.Errorf("%w: process %d of user %d, this is user %d", errStranger, other.Pid, other.Uid, me)
	}
	return nil
}
