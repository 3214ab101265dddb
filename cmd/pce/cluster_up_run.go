package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/cluster/natsbus"
	"github.com/pce-engine/pce/cluster/peer"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/internal/atomicfile"
	"github.com/pce-engine/pce/kernels/cuda"
)

// up runs a cluster until ctx ends. What it starts ends in the reverse order:
// runs need the workers until their last checkpoint, workers the broker.
func (a *app) up(ctx context.Context, f *upFlags) (err error) {
	dir, err := filepath.Abs(f.dir)
	if err != nil {
		return err
	}
	f.dir = dir
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	lock, err := atomicfile.Lock(f.dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	if f.urlFile != "" { // what waits for it must not find that of an earlier cluster
		if err := removeURLFile(f.urlFile); err != nil {
			return err
		}
	}
	log := slog.New(slog.NewTextHandler(a.stderr, nil))
	program, err := os.Executable()
	if err != nil {
		return err
	}
	id, err := f.identity()
	if err != nil {
		return err
	}
	to, err := f.open(ctx, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.close()) }()
	bus, err := connectBroker(ctx, to.coordinator)
	if to.broker != nil && errors.Is(err, syscall.ENOSPC) {
		err = fmt.Errorf("%s: %w", f.dir, err)
	}
	if err != nil {
		return err
	}
	defer bus.Close()
	host, advertise := f.peerHost()
	direct, err := peer.Listen(peer.Options{ID: id, Address: net.JoinHostPort(host, "0"), Advertise: advertise, Local: f.dir, Logger: log})
	if err != nil {
		return err
	}
	defer direct.Close()
	relayed, err := natsbus.NewPeers(bus.Conn(), id, log)
	if err != nil {
		return err
	}
	defer relayed.Close()
	co := cluster.NewCoordinator(cluster.CoordinatorOptions{
		ID: id, Bus: bus, Peers: []cluster.Peers{direct, relayed}, Lease: bus.Lease(), LeaseNow: bus.LeaseNow, Log: log,
	})

	files, err := job.NewFiles(f.dir, f.roots)
	if err != nil {
		return err
	}
	runner := &job.Runner{
		Coordinator: co, Bus: bus, Kinds: a.jobKinds(runOptions(f.run.device, f.run.threads)), Dir: f.dir, Files: files, Log: a.stderr, Watch: endWithStorage,
	}

	if to.broker != nil {
		still, err := watchStorage(ctx, bus, func() error { return storageProblem(ctx, to.broker.Problem, bus.Probe) }, log)
		if err != nil {
			return err
		}
		defer still()
		defer watchClients(ctx, filepath.Join(f.dir, seatsDir), f.workers+f.seats, to.seats, to.broker.Admit, log)()
	}
	quiet, err := serveFiles(ctx, bus, id, f.dir, log)
	if err != nil {
		return err
	}
	defer quiet()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	crew := startCrew(f.children(to, id, program, a.env), log, func(err error) {
		if !f.external() && f.seats == 0 { // no other worker can come
			fail(err)
		}
	})
	defer crew.stop()
	if f.urlFile != "" {
		if err := to.client.write(f.urlFile); err != nil {
			return err
		}
		defer to.client.remove(f.urlFile)
	}
	if _, err := fmt.Fprintf(a.stdout, "cluster ready at %s, %s here\n", to.coordinator.URLs, several(len(to.workers), "worker")); err != nil {
		return err
	}
	taker := &job.Taker{Bus: bus, Log: log, ID: id, Run: runner.Do, Code: stateCode, Over: runner.Forget}
	unfinished, err := taker.Work(ctx)
	var lonely *noCrewError
	switch {
	case err != nil:
		return err
	case errors.As(context.Cause(ctx), &lonely):
		return lonely
	case unfinished:
		return fmt.Errorf("%w: a run is not done; pce cluster up --dir %s continues it", em.ErrStopped, f.dir)
	}
	return nil
}

// noCrewError says why no worker is left.
type noCrewError struct{ last error }

// Error gives the error of the worker that was given up last; the log has those of the others.
func (e *noCrewError) Error() string {
	return fmt.Sprintf("%v: no worker is left: %v", cluster.ErrCluster, e.last)
}

// Unwrap makes the error one of the cluster's, whatever ended the worker.
func (e *noCrewError) Unwrap() []error { return []error{cluster.ErrCluster, e.last} }

// crew is the worker processes of this machine.
type crew struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// startCrew starts the children, a goroutine for each that starts its process again whenever it
// dies. A child that dies too often is given up, which is logged; when all are, gone is called
// with a noCrewError, once, from one of these goroutines. Without children it is never called.
// The caller stops the crew.
func startCrew(children []*child, log *slog.Logger, gone func(error)) *crew {
	ctx, cancel := context.WithCancel(context.Background())
	c := &crew{cancel: cancel}
	var mu sync.Mutex
	left := len(children)
	for _, ch := range children {
		c.wg.Go(func() {
			err := ch.keep(ctx, log)
			if err == nil {
				return
			}
			log.Error("worker given up", "worker", ch.name, "err", err)
			mu.Lock()
			defer mu.Unlock()
			if left--; left == 0 {
				gone(&noCrewError{err})
			}
		})
	}
	return c
}

// stop asks all children to leave, and waits until they have.
func (c *crew) stop() {
	c.cancel()
	c.wg.Wait()
}

// cardDevices lists the cards that workers take in turn where the device is
// chosen for them; empty: each gets the device that was given.
func cardDevices(device string) []string {
	if device != "auto" {
		return nil
	}
	found, err := cuda.Cards()
	if err != nil {
		return nil // auto is the CPU then
	}
	var list []string
	for _, c := range found {
		list = append(list, fmt.Sprintf("cuda:%d", c.Ordinal))
	}
	return list
}

// children describes the workers of this machine, a process each with a directory and key of
// its own. On a broker without keys, which others may lead workers of too, their ids have what
// is random of the coordinator's in front. Cards are dealt out to them in turn. Nothing is started here.
func (f *upFlags) children(c *connections, coordinator, program string, env []string) []*child {
	devices := cardDevices(f.run.device)
	host, advertise := f.peerHost()
	var list []*child
	for i, key := range c.workers {
		name := natsbus.WorkerName(i)
		dir := filepath.Join(f.dir, "workers", name)
		if key == "" {
			name = coordinator[strings.LastIndexByte(coordinator, '-')+1:] + "-" + name
		}
		argv := []string{program, "worker", "--cluster", c.coordinator.URLs, "--id", name, "--dir", dir, "--leave-on-eof",
			"--threads", strconv.Itoa(f.run.threads), "--peer-addr", net.JoinHostPort(host, "0")}
		if f.lease != 0 { // else as the broker has it when the worker starts, which may have another by then
			argv = append(argv, "--lease", f.lease.String())
		}
		if key != "" {
			argv = append(argv, "--credentials", key)
		}
		if c.coordinator.CA != "" {
			argv = append(argv, "--ca", c.coordinator.CA)
		}
		if advertise != "" {
			argv = append(argv, "--advertise", advertise)
		}
		device := f.run.device
		if len(devices) > 0 {
			device = devices[i%len(devices)]
		}
		argv = append(argv, "--device", device)
		for _, r := range f.roots {
			argv = append(argv, "--root", r)
		}
		list = append(list, &child{name: name, argv: argv, env: env, dir: dir})
	}
	return list
}
