package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/natsbus"
	"github.com/pce-engine/pce/cluster/peer"
	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/run"
)

// leadFlags are the flags of a command that leads a run itself.
type leadFlags struct {
	cluster   clusterFlags
	peerAddr  string
	advertise string
}

func (f *leadFlags) register(flags *pflag.FlagSet) {
	f.cluster.register(flags)
	flags.StringVar(&f.peerAddr, "peer-addr", "127.0.0.1:0", "with --cluster: HOST:PORT to take data from workers at; port 0: any free one")
	flags.StringVar(&f.advertise, "advertise", "", "with --cluster: HOST or HOST:PORT at which workers reach --peer-addr; left out: --peer-addr")
}

// given reports whether a cluster computes.
func (f *leadFlags) given() bool { return f.cluster.cluster != "" }

// check refuses addresses that cannot work, and flags that have no effect.
func (f *leadFlags) check(given func(string) bool) error {
	if !f.given() {
		for _, flag := range []string{"credentials", "ca", "peer-addr", "advertise"} {
			if given(flag) {
				return usagef("--%s has no effect without --cluster", flag)
			}
		}
		return nil
	}
	host, _, err := net.SplitHostPort(f.peerAddr)
	if err != nil {
		return usagef("--peer-addr %q: want HOST:PORT", f.peerAddr)
	}
	if f.advertise == "" && isWildcard(host) {
		return usagef("--peer-addr %s does not say how workers reach this machine; add --advertise HOST", f.peerAddr)
	}
	return nil
}

// localRunPrefix begins the ids of runs that pce train --cluster leads.
const localRunPrefix = "train-"

// localRunID names the run of a directory of this machine, always alike: a run
// that is resumed takes its own lead again.
func localRunID(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	sum := sha256.Sum256([]byte(host + "\x00" + dir))
	return localRunPrefix + hex.EncodeToString(sum[:8]), nil
}

// trainOnCluster trains as o says, but on the workers of a cluster: this process
// leads the run. Log lines go to w too.
func (a *app) trainOnCluster(ctx context.Context, f *leadFlags, cfg *configs.Config, o run.TrainOptions, w io.Writer) (res *run.Result, err error) {
	id, err := localRunID(o.Dir)
	if err != nil {
		return nil, err
	}
	to, err := f.cluster.options("train")
	if err != nil {
		return nil, err
	}
	id = ownedRun(id, to.Credentials)
	bus, err := connectBroker(ctx, to)
	if err != nil {
		return nil, err
	}
	defer bus.Close()
	log := runLog(w, bus.Events(), id)
	leader := "c-" + natsbus.ClientName(to.Credentials) + "-" + id
	direct, err := peer.Listen(peer.Options{ID: leader, Address: f.peerAddr, Advertise: f.advertise, Local: o.Dir, Logger: log})
	if err != nil {
		return nil, err
	}
	defer direct.Close()
	relayed, err := natsbus.NewPeers(bus.Conn(), leader, log)
	if err != nil {
		return nil, err
	}
	defer relayed.Close()
	co := cluster.NewCoordinator(cluster.CoordinatorOptions{
		ID: leader, Bus: bus, Peers: []cluster.Peers{direct, relayed}, Lease: bus.Lease(), Log: log,
	})
	c := &clusterRun{app: a, co: co, bus: bus, cfg: cfg, written: cfg, id: id, dir: o.Dir, log: log}
	return a.leadTraining(ctx, c, o)
}

// leadTraining trains, and records how the run ended.
func (a *app) leadTraining(ctx context.Context, c *clusterRun, o run.TrainOptions) (*run.Result, error) {
	c.forgetCancel(ctx)
	watched, stop := watchCancel(ctx, c.bus, c.id)
	defer stop()
	o.EM.Logger = c.log
	meter := c.measured(&o)
	res, err := run.TrainElsewhere(watched, o, c.elsewhere())
	if err == nil {
		meter.end(res)
	}
	record, began := runRecord{RunStatus: c.status()}, c.run != nil
	err = errors.Join(err, c.close(watched, over(watched, err)))
	switch {
	case err == nil:
		record.State = stateDone
	case errors.Is(context.Cause(watched), errCancelled):
		record.State, record.Code = stateCancelled, exitInterrupted
		err = fmt.Errorf("%w: run %s was cancelled; --resume goes on from its last checkpoint", context.Canceled, c.id)
	case ctx.Err() != nil:
		record.State, record.Code = stateInterrupted, exitCheckpointed
	default:
		record.State, record.Error, record.Code = stateFailed, oneLine(err.Error()), exitCode(err)
	}
	if !began {
		return res, err
	}
	parting, cancel := context.WithTimeout(context.WithoutCancel(ctx), partingTime)
	defer cancel()
	if e := putRun(parting, c.bus, &record); e != nil {
		c.log.Warn("the end of the run was not recorded", "err", e)
	}
	c.forgetCancel(parting)
	return res, err
}

// forgetCancel removes a request to cancel the run.
func (c *clusterRun) forgetCancel(ctx context.Context) {
	err := c.bus.Bucket(cluster.RunsBucket).Delete(ctx, cancelPrefix+c.id, 0)
	if err != nil && !errors.Is(err, cluster.ErrNoRecord) {
		c.log.Warn("an old request to cancel the run was not removed", "err", err)
	}
}

// status returns the status of the run; none before it begins.
func (c *clusterRun) status() (s cluster.RunStatus) {
	if c.run != nil {
		c.run.Update(func(now *cluster.RunStatus) { s = *now })
	}
	return s
}
