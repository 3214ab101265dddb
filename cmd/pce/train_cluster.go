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
	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/cluster/natsbus"
	"github.com/pce-engine/pce/cluster/peer"
	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/run"
)

// defaultPeerAddr is any free port of this machine alone.
const defaultPeerAddr = "127.0.0.1:0"

// leadFlags are the flags of a command that leads a run itself.
type leadFlags struct {
	cluster   clusterFlags
	peerAddr  string
	advertise string
}

func (f *leadFlags) register(flags *pflag.FlagSet) {
	f.cluster.register(flags)
	flags.StringVar(&f.peerAddr, "peer-addr", defaultPeerAddr, "with --cluster: HOST:PORT to take data from workers at; port 0: any free one")
	flags.StringVar(&f.advertise, "advertise", "", "with --cluster: HOST or HOST:PORT at which workers reach --peer-addr; left out: --peer-addr")
}

// given reports whether a cluster computes.
func (f *leadFlags) given() bool { return f.cluster.cluster != "" }

// args returns the flags as they were given, for a command that continues the run.
func (f *leadFlags) args() (args []string) {
	for _, x := range []struct{ name, value, left string }{
		{"cluster", f.cluster.cluster, ""}, {"credentials", f.cluster.credentials, ""}, {"ca", f.cluster.ca, ""},
		{"peer-addr", f.peerAddr, defaultPeerAddr}, {"advertise", f.advertise, ""},
	} {
		if x.value != x.left {
			args = append(args, "--"+x.name, x.value)
		}
	}
	return args
}

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

// ownedRun returns the id of a run of the client that has these credentials. Only that
// one may write what belongs to the run.
func ownedRun(id, credentials string) string { return id + "-" + natsbus.ClientName(credentials) }

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
	return job.LocalPrefix + hex.EncodeToString(sum[:8]), nil
}

// trainOnCluster trains as o says, but on the workers of a cluster: this process
// leads the run. Log lines go to w too.
func (a *app) trainOnCluster(ctx context.Context, f *leadFlags, cfg *configs.Config, o run.TrainOptions, w io.Writer) (res *run.Result, err error) {
	id, err := localRunID(o.Dir)
	if err != nil {
		return nil, err
	}
	to, err := f.cluster.options(ctx, "train")
	if err != nil {
		return nil, err
	}
	id = ownedRun(id, to.Credentials)
	bus, err := connectBroker(ctx, to)
	if err != nil {
		return nil, err
	}
	defer bus.Close()
	log := job.NewLog(w, bus.Events(), id)
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
		ID: leader, Bus: bus, Peers: []cluster.Peers{direct, relayed}, Lease: bus.Lease(), LeaseNow: bus.LeaseNow, Log: log,
	})
	l := &job.Lead{Coordinator: co, Bus: bus, Build: run.ReadVersion().Source(), ID: id, Kind: kindTrain, Dir: o.Dir, Log: log, Watch: endWithStorage}
	configure(l, cfg)
	return (&clusterTraining{app: a, Lead: l, cfg: cfg, written: cfg}).lead(ctx, o)
}

// clusterTraining is a run of training that the workers of a cluster compute.
type clusterTraining struct {
	*job.Lead
	app *app
	cfg *configs.Config
	// written is cfg as the run's config.yaml has it: with the paths that its owner
	// knows.
	written *configs.Config
}

// train trains on the workers. A config that leaves train.shard_rows out gets them
// once the workers are there.
func (c *clusterTraining) train(ctx context.Context, o run.TrainOptions) (*run.Result, error) {
	rows, err := c.rows(ctx)
	if err != nil {
		return nil, err
	}
	by := run.Elsewhere{Flows: c.Flows(compileOptions(&c.cfg.Compile), rows)}
	if c.cfg.Train.ShardRows == 0 {
		by.Prepare = c.chooseShards
	}
	o.EM.Logger = c.Log
	meter := c.Measure(&o.EM)
	res, err := run.TrainElsewhere(ctx, o, by)
	if err == nil {
		meter.End(res)
		// A run that was resumed after its end has done no step here, and one that train.steps ends may end within an epoch.
		c.Update(func(s *cluster.RunStatus) { s.Epoch, s.Step = res.Epochs, res.Steps })
	}
	return res, err
}

// rows names the rows of the run, none for a split that the config leaves out.
func (c *clusterTraining) rows(ctx context.Context) (rows job.TrainRows, err error) {
	d := &c.cfg.Data
	o, err := c.app.findOptions(c.cfg, kindTrain)
	if err != nil {
		return rows, err
	}
	for _, s := range []struct {
		paths configs.Paths
		rows  *job.Rows
	}{{d.Train, &rows.Train}, {d.Valid, &rows.Valid}, {d.Test, &rows.Test}} {
		if absent(s.paths) {
			continue
		}
		paths, err := c.app.expandPaths(ctx, s.paths)
		if err != nil {
			return rows, err
		}
		if *s.rows, err = job.FindRows(ctx, paths, o); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// lead trains on the workers, and records with the broker how the run ended: done, cancelled,
// interrupted or failed. The record is written in a time of its own, as ctx may have ended, and
// only if the run had begun, or had the lead and was left while it waited for workers, of which its record says that it is
// running. One that cannot be written is a warning, since the run's directory
// says the same. What a run that had not begun has uploaded is removed, as it may have no record by which it could be cancelled.
func (c *clusterTraining) lead(ctx context.Context, o run.TrainOptions) (*run.Result, error) {
	c.forgetCancel(ctx)
	watched, stop := job.WatchCancel(ctx, c.Bus, c.ID)
	defer stop()
	res, err := c.train(watched, o)
	record, began := job.Record{RunStatus: c.Status()}, c.Began()
	// What was asked of the broker when ctx ended says that it was not reached, too.
	unreachable := errors.Is(err, cluster.ErrUnreachable) && watched.Err() == nil
	err = errors.Join(err, c.Close(watched, !began && !unreachable || job.Over(watched, err)))
	switch {
	case err == nil:
		record.State = job.StateDone
	case errors.Is(context.Cause(watched), job.ErrCancelled):
		record.State, record.Code = job.StateCancelled, exitInterrupted
		err = fmt.Errorf("%w: run %s was cancelled; --resume continues from its last checkpoint", context.Canceled, c.ID)
	case ctx.Err() != nil:
		record.State, record.Code = job.StateInterrupted, exitCheckpointed
	default:
		record.State, record.Error, record.Code = job.StateFailed, oneLine(job.TextOf(err)), exitCode(err)
		if errors.Is(err, cluster.ErrDeposed) || errors.Is(err, cluster.ErrLost) {
			err = fmt.Errorf("%w; --resume continues from the last checkpoint", err)
		}
	}
	parting, cancel := context.WithTimeout(context.WithoutCancel(ctx), job.PartingTime)
	defer cancel()
	if !began {
		if record.State == job.StateFailed { // it may have found that another process has the directory
			return res, err
		}
		old, _, e := job.GetRun(parting, c.Bus, c.ID)
		if e != nil || old.State != job.StateRunning {
			return res, err
		}
		old.State, old.Code = record.State, record.Code
		record = old
	}
	if e := job.PutRun(parting, c.Bus, &record); e != nil {
		c.Log.Warn("the end of the run was not recorded", "err", e)
	}
	c.forgetCancel(parting)
	return res, err
}

// forgetCancel removes a request to cancel the run.
func (c *clusterTraining) forgetCancel(ctx context.Context) {
	if err := job.ForgetCancel(ctx, c.Bus, c.ID); err != nil {
		c.Log.Warn("an old request to cancel the run was not removed", "err", err)
	}
}
