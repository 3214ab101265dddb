package peer

import (
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/pce-engine/pce/cluster"
)

// Transport is the name of this transport in a cluster.Endpoint.
const Transport = "tcp"

// Options are the settings of Listen.
type Options struct {
	ID      string // of this member
	Address string // to listen on; "": 127.0.0.1:0
	// Advertise is the host, or host:port, that others dial; "": what Address
	// came to be, which must not be a wildcard then.
	Advertise string
	// Stall is how long a member may take no bytes before Send gives up on it;
	// 0: 15 s.
	Stall time.Duration
	// Local is a directory in which Listen makes one, of mode 0700, with a Unix
	// socket for members on the same host, and Close removes both; "": none. If
	// the path is too long they are below os.TempDir. Linux only. Where it cannot
	// be, one line in the log says why, and the others use TCP.
	Local  string
	Logger *slog.Logger // nil: none
}

func (o *Options) complete() error {
	if o.ID == "" {
		return fmt.Errorf("%w: peer: no id; set Options.ID", cluster.ErrCluster)
	}
	if len(o.ID) > idBytes {
		return fmt.Errorf("%w: peer: an id of %d bytes; want at most %d", cluster.ErrCluster, len(o.ID), idBytes)
	}
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	if o.Stall < 0 {
		return fmt.Errorf("%w: peer: stall %v; want more than 0, or 0 for 15 s", cluster.ErrCluster, o.Stall)
	}
	if o.Stall == 0 {
		o.Stall = 15 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// advertised is what others dial.
func (o *Options) advertised(listens *net.TCPAddr) (string, error) {
	if o.Advertise == "" {
		if listens.IP.IsUnspecified() {
			return "", fmt.Errorf("%w: peer: listening on %v says not how others reach it; advertise a host",
				cluster.ErrCluster, listens)
		}
		return listens.String(), nil
	}
	if host, port, err := net.SplitHostPort(o.Advertise); err == nil && host != "" && port != "" && port != "0" {
		return o.Advertise, nil
	}
	name := o.Advertise
	if ip := net.ParseIP(name); ip == nil {
		host, port, err := net.SplitHostPort(name + ":0")
		if err != nil || host == "" || port != "0" {
			return "", fmt.Errorf("%w: peer: cannot advertise %q; want a host, or host:port", cluster.ErrCluster, o.Advertise)
		}
		name = host // without the brackets of an IPv6 address
	}
	return net.JoinHostPort(name, fmt.Sprint(listens.Port)), nil
}
