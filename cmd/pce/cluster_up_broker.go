package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/cluster/natsbus"
	"github.com/pce-engine/pce/internal/atomicfile"
)

// seatsDir, in the directory of a cluster, has the keys.
const seatsDir = "seats"

// connections are the ways to the broker.
type connections struct {
	coordinator natsbus.Options
	client      urlFile         // empty for a broker that another process runs
	workers     []string        // keys of the workers here; "": none is needed
	broker      *natsbus.Broker // nil: another process runs the broker
	seats       []natsbus.Seat  // that it was started with
	close       func() error
}

// open starts the broker, or finds it, and says how the coordinator and the
// workers here connect to it.
func (f *upFlags) open(ctx context.Context, log *slog.Logger) (c *connections, err error) {
	seatsDir := filepath.Join(f.dir, seatsDir)
	if f.external() {
		o, err := f.cluster.options(ctx, "coordinator")
		if err != nil {
			return nil, err
		}
		c := &connections{coordinator: o, close: func() error { return nil }}
		c.coordinator.Lease, c.coordinator.Logger = f.lease, log
		for i := range f.workers {
			file := ""
			if o.Credentials != "" {
				file = filepath.Join(seatsDir, natsbus.WorkerName(i)+".nk")
				if _, err := os.Stat(file); err != nil {
					return nil, usagef("the broker wants a key from each worker: %v; put it there, or give --workers 0", err)
				}
			}
			c.workers = append(c.workers, file)
		}
		return c, nil
	}
	if err := f.takeKeys(seatsDir); err != nil {
		return nil, err
	}
	seats, err := natsbus.NewSeats(seatsDir, f.workers+f.seats)
	if err != nil {
		return nil, err
	}
	host, port, err := f.listenAt()
	if err != nil {
		return nil, err
	}
	broker, err := natsbus.StartBroker(natsbus.BrokerOptions{
		Dir: filepath.Join(f.dir, "broker"), Host: host, Port: port, Cert: f.tlsCert, Key: f.tlsKey, Seats: seats, Logger: log,
	})
	if err != nil {
		if strings.Contains(err.Error(), syscall.EADDRINUSE.Error()) { // the server gives no more than its words
			err = fmt.Errorf("%w; if another program has the port, give --addr HOST:PORT", err)
		}
		return nil, err
	}
	if err := f.keepPort(broker.Port()); err != nil {
		broker.Close()
		return nil, err
	}
	c = &connections{close: broker.Close, broker: broker, seats: seats}
	at := natsbus.Options{URLs: f.url(host, broker.Port()), CA: f.cluster.ca, Lease: f.lease, Logger: log, Name: "pce coordinator", Restarted: true}
	if f.tlsCert != "" && at.CA == "" {
		at.CA = f.tlsCert // who shows it is the broker
	}
	c.client = urlFile{url: at.URLs, ca: at.CA}
	for _, s := range seats {
		switch {
		case s.Name == "coordinator":
			at.Credentials = s.File
		case s.Name == natsbus.DefaultClient:
			c.client.credentials = s.File
		case !s.Client:
			c.workers = append(c.workers, s.File)
		}
	}
	c.coordinator, c.workers = at, c.workers[:f.workers]
	return c, nil
}

// maxKeyBytes bounds a key file.
const maxKeyBytes = 4 << 10

// takeKeys copies the keys of --keys, from where they may be readable to more
// than their owner, to where they are not. A key that is there already may be
// open to a group since: Kubernetes gives the group of a pod all files of a volume
// that it mounts, and a file that is replaced keeps its permissions.
func (f *upFlags) takeKeys(to string) error {
	if f.keys == "" {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(f.keys, "*.nk"))
	if err != nil || len(files) == 0 {
		return usagef("--keys %s: no key NAME.nk there", f.keys)
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for _, file := range files {
		in, err := os.Open(file)
		if err != nil {
			return usagef("--keys: %v", err)
		}
		key, err := io.ReadAll(io.LimitReader(in, maxKeyBytes+1))
		in.Close()
		if err != nil || len(key) > maxKeyBytes {
			return usagef("--keys: %s is not a key", file)
		}
		target := filepath.Join(to, filepath.Base(file))
		if err := os.Chmod(target, 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		err = atomicfile.Write(target, 0o600, func(w io.Writer) error {
			_, err := w.Write(key)
			return err
		})
		clear(key)
		if err != nil {
			return err
		}
	}
	return nil
}

// url is where clients find the broker.
func (f *upFlags) url(host string, port int) string {
	if f.advertise != "" {
		host = strings.Trim(f.advertise, "[]") // brackets come with the port
	}
	scheme := "nats"
	if f.tlsCert != "" {
		scheme = "tls"
	}
	return scheme + "://" + net.JoinHostPort(host, strconv.Itoa(port))
}

// portFile keeps the broker's port, so that it is found again after a restart.
func (f *upFlags) portFile() string { return filepath.Join(f.dir, "port") }

// listenAt is the address of the broker: where the port may be any, the one that
// it had before.
func (f *upFlags) listenAt() (host string, port int, err error) {
	host, text, err := net.SplitHostPort(f.addr)
	if err != nil {
		return "", 0, err
	}
	if port, err = strconv.Atoi(text); err != nil || port != 0 {
		return host, port, err
	}
	kept, err := os.ReadFile(f.portFile())
	if errors.Is(err, fs.ErrNotExist) {
		return host, 0, nil
	}
	if err != nil {
		return "", 0, err
	}
	if len(kept) > 6 {
		kept = kept[:6]
	}
	var n uint16
	if _, err := fmt.Sscanf(string(kept), "%d\n", &n); err != nil || n == 0 {
		return "", 0, fmt.Errorf("%w: %s holds no port; remove it", cluster.ErrCluster, f.portFile())
	}
	return host, int(n), nil
}

func (f *upFlags) keepPort(port int) error {
	return writeLine(f.portFile(), strconv.Itoa(port))
}

// identity is the coordinator's name, the same after a restart, so that it may
// take its own lead again at once.
func (f *upFlags) identity() (string, error) {
	file := filepath.Join(f.dir, "id")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		id := "c-up-" + job.NewID(time.Now())
		return id, writeLine(file, id)
	}
	if err != nil {
		return "", err
	}
	id := string(text)
	if n := len(id); n > 0 && id[n-1] == '\n' {
		id = id[:n-1]
	}
	if job.CheckID(id) != nil {
		return "", fmt.Errorf("%w: %s holds no name; remove it", cluster.ErrCluster, file)
	}
	return id, nil
}

// writeLine replaces a file by one line.
func writeLine(name, line string) error {
	return atomicfile.Write(name, 0o600, func(w io.Writer) error {
		_, err := io.WriteString(w, line+"\n")
		return err
	})
}
