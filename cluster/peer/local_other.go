//go:build !linux

package peer

import (
	"errors"
	"net"
)

var errLinux = errors.New("on Linux only")

func bootID() (string, error) { return "", errLinux }

func placeOf(string) (place, error) { return place{}, errLinux }

func listenLocal(string, string, string) (*net.UnixListener, place, error) {
	return nil, place{}, errLinux
}

func closeLocal(*net.UnixListener) {}

func sameUser(*net.UnixConn) error { return errLinux }
