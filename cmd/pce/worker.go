package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/cluster/natsbus"
	"github.com/pce-engine/pce/cluster/peer"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/internal/atomicfile"
	"github.com/pce-engine/pce/internal/periodic"
	"github.com/pce-engine/pce/run"
)

// workerFlags are the flags of worker.
type workerFlags struct {
	cluster    clusterFlags
	run        deviceFlags
	id         string
	seat       int
	dir        string
	roots      []string
	healthAddr string
	peerAddr   string
	advertise  string
	lease      time.Duration
	leaveOnEOF bool
}

// workerCommand makes the command pce worker, which computes for a cluster until it is
// interrupted and ends with exit code 75 then.
func (a *app) workerCommand() *cobra.Command {
	var f workerFlags
	c := &cobra.Command{
		Use:   "worker --cluster URL|@FILE --credentials FILE",
		Short: "Compute for the runs of a cluster",
		Long: `Compute for the runs of a cluster, until SIGINT, SIGTERM, SIGHUP or SIGUSR1: then the
shard at hand is finished, the others are handed back, and the exit code is 75.

Workers send each other flows and parameters directly. Where others are on other
machines, --peer-addr must be an address that they can reach. Runs may read files
below --root only; what lies elsewhere is uploaded with the run.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGUSR1) // what batch systems send before the time is up
			defer stop()
			if f.leaveOnEOF {
				var cancel context.CancelFunc
				ctx, cancel = context.WithCancel(ctx)
				defer cancel()
				go func() {
					io.Copy(io.Discard, a.stdin)
					cancel()
				}()
			}
			return a.work(ctx, &f)
		},
	}
	f.cluster.register(c.Flags())
	f.run.register(c.Flags())
	c.Flags().StringVar(&f.id, "id", "", "name in the cluster; left out: that of the credentials file, without its extension")
	c.Flags().IntVar(&f.seat, "seat", noSeat, "number of this worker, for --credentials that is the directory of all workers' keys")
	c.Flags().StringVar(&f.dir, "dir", "", "directory for state and cached data; left out: pce-ID")
	c.Flags().StringArrayVar(&f.roots, "root", nil, "directory that runs may read data and models from; repeatable")
	c.Flags().StringVar(&f.healthAddr, "health-addr", "", "HOST:PORT to serve /healthz, /readyz and /metrics at; left out: nowhere")
	c.Flags().StringVar(&f.peerAddr, "peer-addr", "127.0.0.1:0", "HOST:PORT to take data from other workers at; port 0: any free one")
	c.Flags().StringVar(&f.advertise, "advertise", "", "HOST or HOST:PORT at which others reach --peer-addr; left out: --peer-addr")
	c.Flags().DurationVar(&f.lease, "lease", 0, "the cluster drops a worker that is silent for this long; left out: as its broker has it")
	c.Flags().BoolVar(&f.leaveOnEOF, "leave-on-eof", false, "also leave when stdin ends, as it does when the process that started this one dies")
	return c
}

// noSeat is --seat left out.
const noSeat = -1

// takeSeat chooses a key of a directory of them.
func (f *workerFlags) takeSeat() error {
	info, err := os.Stat(f.cluster.credentials)
	dir := err == nil && info.IsDir()
	switch {
	case f.seat < noSeat:
		return usagef("--seat %d: want 0 to %d", f.seat, maxSeats+maxWorkers-1)
	case f.seat == noSeat && dir:
		return usagef("--credentials %s is a directory; add --seat N for the key of worker N in it", f.cluster.credentials)
	case f.seat == noSeat:
		return nil
	case f.seat >= maxSeats+maxWorkers:
		return usagef("--seat %d: want 0 to %d", f.seat, maxSeats+maxWorkers-1)
	case !dir:
		return usagef("--seat %d wants --credentials to be the directory of the workers' keys", f.seat)
	}
	f.cluster.credentials = filepath.Join(f.cluster.credentials, natsbus.WorkerName(f.seat)+".nk")
	return nil
}

// complete checks the flags and fills in what follows from others: the id from the name of the
// key, the directory from the id. It is called before anything is opened; a fault is a usage
// error.
func (f *workerFlags) complete(o natsbus.Options) error {
	if f.id == "" {
		if o.Credentials == "" {
			return usagef("no --id, and no --credentials whose file name would be it")
		}
		base := filepath.Base(o.Credentials)
		f.id = strings.TrimSuffix(base, filepath.Ext(base))
	}
	if job.CheckID(f.id) != nil {
		return usagef("--id %.80q: want letters, digits, - and _; %d at most", f.id, job.MaxID)
	}
	if f.dir == "" {
		f.dir = "pce-" + f.id
	}
	if f.lease != 0 {
		if err := checkLease(f.lease); err != nil {
			return err
		}
	}
	for _, addr := range []struct{ flag, value string }{{"health-addr", f.healthAddr}, {"peer-addr", f.peerAddr}} {
		if addr.value == "" {
			continue
		}
		if _, _, err := net.SplitHostPort(addr.value); err != nil {
			return usagef("--%s %q: want HOST:PORT", addr.flag, addr.value)
		}
	}
	host, _, err := net.SplitHostPort(f.peerAddr)
	if err != nil {
		return usagef("--peer-addr %q: want HOST:PORT", f.peerAddr)
	}
	if f.advertise == "" && isWildcard(host) {
		return usagef("--peer-addr %s does not say how others reach this machine; add --advertise HOST", f.peerAddr)
	}
	return checkRoots(f.roots)
}

// leaseInterval is how often a worker looks which lease the broker has.
var leaseInterval = 5 * time.Second

// checkRoots makes the roots absolute, as they are told to others.
func checkRoots(roots []string) error {
	for i, r := range roots {
		full, err := filepath.Abs(r)
		if err != nil {
			return usagef("--root %s: %v", r, err)
		}
		if info, err := os.Stat(full); err != nil || !info.IsDir() {
			return usagef("--root %s is not a directory here; make it or name another", r)
		}
		roots[i] = full
	}
	return nil
}

// checkLease refuses leases that a slow moment would break.
func checkLease(d time.Duration) error {
	if d < time.Second || d > time.Hour {
		return usagef("--lease %v: want between 1s and 1h", d)
	}
	return nil
}

// isWildcard reports whether a listener at the host is on every network.
func isWildcard(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// threadsOf is how many threads the CPU device takes.
func threadsOf(o run.Options) int {
	if o.Threads > 0 {
		return o.Threads
	}
	return runtime.GOMAXPROCS(0)
}

// work joins the cluster and computes until ctx ends, then finishes its shard, hands the rest
// back and returns em.ErrStopped. It locks its directory, so two workers cannot share one. A
// broker that does not answer within brokerPatience is an error.
func (a *app) work(ctx context.Context, f *workerFlags) (err error) {
	if err := f.takeSeat(); err != nil {
		return err
	}
	o, err := f.cluster.options(ctx, "worker")
	if err != nil {
		return err
	}
	if err := f.complete(o); err != nil {
		return err
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	lock, err := atomicfile.Lock(f.dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	log := slog.New(slog.NewTextHandler(a.stderr, nil)).With("worker", f.id)
	defer headroom(trainGC)()

	o.Name, o.Lease, o.Logger = "pce "+f.id, f.lease, log
	bus, err := connectBroker(ctx, o)
	if err != nil {
		return err
	}
	defer bus.Close()
	compute := runOptions(f.run.device, f.run.threads)
	files, err := job.NewFiles(f.dir, f.roots)
	if err != nil {
		return err
	}
	loader, err := job.NewLoader(a.jobKinds(compute), files, compute)
	if err != nil {
		return err
	}
	member := cluster.Member{Build: run.ReadVersion().Source(), Device: loader.Device(), Paths: loader.Paths(), Threads: threadsOf(compute), Roots: f.roots, PID: os.Getpid()}
	if member.Host, err = os.Hostname(); err != nil {
		member.Host = "unknown"
	}
	// What the broker has, also where another one was asked for that this key may not set: the records of a worker that speaks less
	// often than that vanish while it lives.
	f.lease = bus.Lease()
	for {
		shorter, err := f.join(ctx, bus, loader, member, log)
		if err != nil {
			return err
		}
		if shorter == 0 {
			return fmt.Errorf("%w: left the cluster; its shards were finished or handed back", em.ErrStopped)
		}
		f.lease = shorter
	}
}

// join works until ctx ends, or the broker has a shorter lease than the worker lives by: that is returned, and the worker is to join anew.
func (f *workerFlags) join(ctx context.Context, bus *natsbus.Bus, loader *job.Loader, member cluster.Member, log *slog.Logger) (shorter time.Duration, err error) {
	direct, err := peer.Listen(peer.Options{ID: f.id, Address: f.peerAddr, Advertise: f.advertise, Local: f.dir, Logger: log})
	if err != nil {
		return 0, err
	}
	defer direct.Close()
	relayed, err := natsbus.NewPeers(bus.Conn(), f.id, log)
	if err != nil {
		return 0, err
	}
	defer relayed.Close()
	metered := []*meteredPeers{{Peers: direct}, {Peers: relayed}}
	w, err := cluster.NewWorker(cluster.WorkerOptions{
		ID: f.id, Bus: bus, Peers: []cluster.Peers{metered[0], metered[1]}, Loader: loader, Member: member, Dir: f.dir, Lease: f.lease, Log: log,
	})
	if err != nil {
		return 0, err
	}
	if f.healthAddr != "" {
		at, stop, err := (&healthServer{state: w.Health, peers: metered}).start(ctx, f.healthAddr, log)
		if err != nil {
			return 0, err
		}
		defer stop()
		log.Info("health endpoint", "addr", at)
	}
	log.Info("worker started", "lease", f.lease, "device", member.Device, "peers", direct.Endpoint().Address)
	live, leave := context.WithCancel(ctx)
	defer leave()
	stop := periodic.Start(live, leaseInterval, func(call context.Context) {
		if now, err := bus.LeaseNow(call); err == nil && now > 0 && now < f.lease {
			log.Warn("the broker has a shorter lease now; joining the cluster anew", "lease", now, "before", f.lease)
			shorter = now
			leave()
		}
	})
	err = w.Run(live)
	stop()
	if ctx.Err() != nil {
		shorter = 0
	}
	return shorter, err
}
