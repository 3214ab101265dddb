package main

import (
	"context"
	"errors"
	"io/fs"
	"os/exec"
	"syscall"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/circuit/resize"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/circuit/structures/trees"
	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/cluster/natsbus"
	"github.com/pce-engine/pce/codec"
	"github.com/pce-engine/pce/compile"
	lower "github.com/pce-engine/pce/compile/forest"
	"github.com/pce-engine/pce/compile/forest/hir"
	"github.com/pce-engine/pce/compile/forest/ir"
	"github.com/pce-engine/pce/compile/forest/schedule"
	"github.com/pce-engine/pce/compile/forest/tune"
	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/rtl"
	"github.com/pce-engine/pce/compile/rtl/simulate"
	"github.com/pce-engine/pce/compile/spn"
	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/forest"
	forestformat "github.com/pce-engine/pce/forest/format"
	"github.com/pce-engine/pce/internal/atomicfile"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/report"
	"github.com/pce-engine/pce/report/curves"
	"github.com/pce-engine/pce/run"
	"github.com/pce-engine/pce/serve"
)

// Exit codes. Scripts and job schedulers act on them; they do not change.
const (
	exitOK           = 0
	exitInternal     = 1
	exitUsage        = 2
	exitData         = 3
	exitMachine      = 4 // device, memory or disk
	exitCluster      = 5
	exitCheckpointed = 75
	exitInterrupted  = 130
)

// errUsage means that the command line does not make sense.
var errUsage = errors.New("pce")

// exitCodes lists the classes of errors; the first match holds.
var exitCodes = []struct {
	class error
	code  int
}{
	{em.ErrStopped, exitCheckpointed}, // before Canceled, which it may wrap
	{context.Canceled, exitInterrupted},
	{errUsage, exitUsage},
	{job.ErrNoRun, exitUsage},
	{configs.ErrConfig, exitUsage},
	{atomicfile.ErrLocked, exitUsage},
	{dataset.ErrSetting, exitUsage},
	{structures.ErrOptions, exitUsage},
	{compile.ErrOptions, exitUsage},
	{spn.ErrOptions, exitUsage},
	{rtl.ErrOptions, exitUsage},
	{em.ErrOptions, exitUsage},
	{run.ErrOptions, exitUsage},
	{resize.ErrOptions, exitUsage},
	{pce.ErrKind, exitUsage},
	{forest.ErrRequest, exitUsage},
	{schedule.ErrSchedule, exitUsage},
	{tune.ErrTune, exitUsage},
	{tune.ErrKept, exitData},
	{run.ErrRun, exitUsage},
	{report.ErrNoRun, exitUsage},
	{curves.ErrOptions, exitUsage},
	{serve.ErrOptions, exitUsage},
	{natsbus.ErrURL, exitUsage},
	{micro.ErrSet, exitMachine},
	{kernels.ErrDevice, exitMachine},
	{kernels.ErrMemory, exitMachine},
	{serve.ErrMemory, exitMachine},
	{syscall.ENOSPC, exitMachine},
	{syscall.EDQUOT, exitMachine},
	{syscall.EFBIG, exitMachine},
	{syscall.EIO, exitMachine},
	{syscall.EROFS, exitMachine},
	{syscall.ENOMEM, exitMachine},
	{syscall.EMFILE, exitMachine},
	{syscall.ENFILE, exitMachine},
	{dataset.ErrFormat, exitData},
	{structures.ErrData, exitData},
	{circuit.ErrGraph, exitData},
	{reduction.ErrProgram, exitData},
	{spn.ErrCode, exitData},
	{rtl.ErrCircuit, exitData},
	{rtl.ErrFit, exitData},
	{rtl.ErrRow, exitData},
	{simulate.ErrTool, exitMachine},
	{exec.ErrNotFound, exitMachine},
	{errGo, exitMachine},
	{errScratch, exitMachine},
	{codec.ErrFile, exitData},
	{codec.ErrModel, exitData},
	{codec.ErrRows, exitData},
	{circuit.ErrLeaf, exitData},
	{format.ErrModel, exitData},
	{format.ErrNoParams, exitData},
	{forest.ErrForest, exitData},
	{hir.ErrForest, exitData},
	{trees.ErrTrees, exitData},
	{ir.ErrLower, exitUsage},
	{lower.ErrLower, exitData},
	{forestformat.ErrModel, exitData},
	{em.ErrCheckpoint, exitData},
	{em.ErrChanged, exitData},
	{report.ErrNoCurve, exitData},
	{em.ErrNumber, exitData},
	{fs.ErrNotExist, exitData},
	{fs.ErrPermission, exitData},
	{fs.ErrExist, exitData}, // of a symbolic link that leads nowhere, where a folder is wanted
	{syscall.EISDIR, exitData},
	{syscall.ELOOP, exitData},
	{syscall.ENOTDIR, exitData},
	{syscall.ENAMETOOLONG, exitData},
	{syscall.ENXIO, exitData},   // of a socket
	{syscall.EBUSY, exitData},   // of an output that is a mount point
	{syscall.ETXTBSY, exitData}, // of an output that is a running program
	{natsbus.ErrFile, exitData},
	{cluster.ErrJob, exitData},       // a class above says more
	{serve.ErrUnavailable, exitData}, // likewise
	{cluster.ErrCluster, exitCluster},
	{syscall.EPIPE, exitData}, // of an output whose reader has ended
}

func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	var end *endedRun
	if errors.As(err, &end) {
		return end.record.Code
	}
	for _, c := range exitCodes {
		if errors.Is(err, c.class) {
			return c.code
		}
	}
	return exitInternal
}

// stateCode is the exit code of a run that was left in a state, with an error if it
// failed.
func stateCode(state string, err error) int {
	switch {
	case err != nil:
		return exitCode(err)
	case state == job.StateCancelled:
		return exitInterrupted
	case state == job.StateInterrupted:
		return exitCheckpointed
	}
	return exitOK
}
