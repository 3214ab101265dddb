package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/natsbus"
	"github.com/pce-engine/pce/kernels/device"
)

// coresPerWorker is how many cores a worker gets where --workers is left out.
const coresPerWorker = 8

// maxWorkers bounds the workers of a machine.
const maxWorkers = 256

// upFlags are the flags of cluster up.
type upFlags struct {
	cluster   clusterFlags // of a broker that is there already
	run       deviceFlags
	dir       string
	workers   int
	seats     int
	keys      string
	urlFile   string
	addr      string
	advertise string
	tlsCert   string
	tlsKey    string
	roots     []string
	lease     time.Duration
}

// clusterUpCommand makes the command pce cluster up, which runs the broker, the coordinator
// and workers of this machine until it is interrupted.
func (a *app) clusterUpCommand() *cobra.Command {
	var f upFlags
	c := &cobra.Command{
		Use:   "up",
		Short: "Run a cluster: broker, coordinator and workers, until interrupted",
		Long: `Run a cluster: a broker, the coordinator that leads the runs of the queue, and
workers as processes of their own, which are started again when they die.

Everything lies in --dir: started again on it, the cluster continues the runs
that were not done, at the same address. Results are in runs/RUN below it, keys in
seats, logs in workers/WORKER/log. SIGINT, SIGTERM or SIGHUP writes a checkpoint and
ends with exit code 75 if a run was not done.

With --cluster it does not start a broker: it leads the cluster of one that was
started elsewhere, NATS 2.11 or newer with JetStream.

Workers on other machines need --seats, a certificate and an --addr that they can
reach; copy seats/WORKER.nk to each.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.complete(cmd.Flags().Changed); err != nil {
				return err
			}
			return a.up(cmd.Context(), &f)
		},
	}
	c.Flags().StringVar(&f.dir, "dir", "pce-cluster", "directory of the cluster")
	c.Flags().IntVar(&f.workers, "workers", 0, fmt.Sprintf("worker processes on this machine; left out: one for each %d cores", coresPerWorker))
	c.Flags().IntVar(&f.seats, "seats", 0, "keys for this many workers on other machines, numbered behind --workers")
	c.Flags().StringVar(&f.keys, "keys", "", "directory with NAME.nk of an earlier cluster to take over; left out: keys are made")
	c.Flags().StringVar(&f.urlFile, "url-file", "", "file to write, once the cluster is ready, for the --cluster @FILE of other commands")
	c.Flags().StringVar(&f.addr, "addr", "127.0.0.1:0", "HOST:PORT of the broker; port 0: any free one, and the same one again later")
	c.Flags().StringVar(&f.advertise, "advertise", "", "HOST at which other machines reach this one; left out: that of --addr")
	c.Flags().StringVar(&f.tlsCert, "tls-cert", "", "PEM file with the broker's certificate")
	c.Flags().StringVar(&f.tlsKey, "tls-key", "", "PEM file with the broker's key")
	c.Flags().StringArrayVar(&f.roots, "root", nil, "directory that runs may read data and models from; repeatable")
	c.Flags().DurationVar(&f.lease, "lease", cluster.DefaultLease, "drop a worker that is silent for this long; left out with --cluster: as that broker has it")
	f.run.register(c.Flags())
	c.Flags().Lookup("threads").Usage = "CPU threads of each worker here; 0: the cores divided by --workers. Results do not depend on it"
	f.cluster.register(c.Flags())
	c.Flags().Lookup("cluster").Usage = "lead the cluster of this broker, which was started elsewhere, instead of starting one: nats://HOST:PORT or tls://HOST:PORT, or @FILE as --url-file wrote it"
	return c
}

// complete checks the flags and fills in what follows from others: a worker for each eight
// cores, and threads that share the machine. given says which flags were set. It is called
// before anything is opened; a fault is a usage error.
func (f *upFlags) complete(given func(string) bool) error {
	if f.external() {
		for _, flag := range []string{"addr", "tls-cert", "tls-key", "seats", "keys", "url-file"} {
			if given(flag) {
				return usagef("--%s is for a broker of its own; leave it or --cluster out", flag)
			}
		}
	} else if f.cluster.credentials != "" {
		return usagef("--credentials is for the broker of --cluster; a broker of its own has keys in %s", filepath.Join(f.dir, "seats"))
	}
	if !given("workers") && !f.external() {
		f.workers = max(1, runtime.GOMAXPROCS(0)/coresPerWorker)
	}
	if f.workers < 0 || f.workers > maxWorkers {
		return usagef("--workers %d: want 0 to %d", f.workers, maxWorkers)
	}
	if f.seats < 0 || f.seats > maxSeats {
		return usagef("--seats %d: want 0 to %d", f.seats, maxSeats)
	}
	if err := f.run.check(); err != nil {
		return err
	}
	if _, err := device.Find(f.run.device); err != nil { // at which all workers would end, time after time
		return err
	}
	if f.run.threads == 0 && f.workers > 0 {
		f.run.threads = max(1, runtime.GOMAXPROCS(0)/f.workers)
	}
	if f.external() && !given("lease") {
		f.lease = 0 // as that broker has it
	} else if err := checkLease(f.lease); err != nil {
		return err
	}
	if err := checkRoots(f.roots); err != nil {
		return err
	}
	return f.checkAddress()
}

// maxSeats bounds the keys of a cluster.
const maxSeats = 500

// external reports whether the broker was started by another command.
func (f *upFlags) external() bool { return f.cluster.cluster != "" }

// checkAddress refuses addresses that others can reach without a certificate, since keys would
// then travel in the clear, wildcard addresses without --advertise, and certificates that are none.
func (f *upFlags) checkAddress() error {
	host, port, err := net.SplitHostPort(f.addr)
	if err != nil {
		return usagef("--addr %q: want HOST:PORT", f.addr)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return usagef("--addr %q: want a port between 0 and 65535", f.addr)
	}
	if (f.tlsCert == "") != (f.tlsKey == "") {
		return usagef("--tls-cert and --tls-key go together")
	}
	if !natsbus.IsLoopback(host) && f.tlsCert == "" {
		return usagef("--addr %s can be reached from other machines; give --tls-cert and --tls-key, or a loopback address", f.addr)
	}
	if isWildcard(host) && f.advertise == "" {
		return usagef("--addr %s does not say how others reach this machine; add --advertise HOST", f.addr)
	}
	if f.tlsCert != "" {
		for _, path := range []string{f.tlsCert, f.tlsKey} {
			if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
				return usagef("%s: not a regular file, and the broker and the members of a cluster read it after this command; write it to a file", path)
			}
		}
		if _, err := loadCertificate(context.Background(), f.tlsCert, f.tlsKey); err != nil {
			return err
		}
	}
	return nil
}

// peerHost is where this machine listens for data, and advertise what it tells
// others about that.
func (f *upFlags) peerHost() (host, advertise string) {
	if f.external() {
		if f.advertise == "" {
			return "127.0.0.1", ""
		}
		return "", f.advertise
	}
	host, _, _ = net.SplitHostPort(f.addr) // checked
	return host, f.advertise
}
