package run

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/compile/spn"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/simt"
)

// Path is how a circuit is compiled: as layers of blocks, or as code of its own operations.
type Path string

// The paths. The tensor path answers every query and trains, so it is taken where it can be;
// code computes log-likelihoods and classes alone.
const (
	PathAuto   Path = ""
	PathTensor Path = "tensor"
	PathCode   Path = "code"
)

// How is how a circuit is compiled. The zero value is the default.
type How struct {
	Path    Path
	Numbers spn.Choice // of code
}

// ParsePath returns the path with a name; auto is PathAuto.
func ParsePath(name string) (Path, error) {
	switch p := Path(name); p {
	case PathAuto, PathTensor, PathCode:
		return p, nil
	case "auto":
		return PathAuto, nil
	}
	return "", fmt.Errorf("%w: no path %.40q; want auto, tensor or code", ErrOptions, name)
}

// CodeInfo describes a circuit that is compiled as code: its arithmetic and how exact that is.
type CodeInfo struct {
	Space string    `json:"space"` // linear, log or scaled
	Type  string    `json:"type"`  // of values: f32 or f64
	Bound spn.Bound `json:"bound"` // of the distance from float64 evaluation, in nats
	// Least is the log-likelihood below which rows are computed again in log space; left out
	// where there are no such rows.
	Least *float64 `json:"least,omitempty"`
	spn.Info
}

func codeInfo(p *spn.Program) *CodeInfo {
	i := &CodeInfo{Space: string(p.Space), Type: p.Type.String(), Bound: p.Bound, Info: p.Info}
	if p.Exact != nil || p.Space == spn.Scaled {
		i.Least = &p.Least
	}
	return i
}

// tensorless returns the first node with a leaf that the tensor path does not have, None if
// there is none.
func tensorless(g *circuit.Graph) circuit.NodeID {
	for i := range g.Nodes {
		if _, ok := g.Nodes[i].Leaf.(circuit.RealHistogram); ok {
			return circuit.NodeID(i)
		}
	}
	return circuit.None
}

// takesCode reports whether the circuit is compiled to code.
func (b *Blueprint) takesCode() (bool, error) {
	id := tensorless(b.Graph)
	switch {
	case b.how.Path == PathCode && b.binned():
		return false, fmt.Errorf("%w: the model reads bins of values, which code does not have; use the tensor path", ErrOptions)
	case b.how.Path == PathTensor && id != circuit.None:
		return false, fmt.Errorf("%w: node %d is a histogram with breaks of its own, which the tensor path does not have; use the path of code", ErrOptions, id)
	case b.how.Path == PathCode && b.params == nil && b.wide == nil:
		return false, fmt.Errorf("%w: the circuit has no parameters, and code is made for them", ErrOptions)
	}
	return b.how.Path == PathCode || id != circuit.None, nil
}

// params64 are the parameters with all digits that there are.
func (b *Blueprint) params64() circuit.ParamFunc64 {
	if b.wide != nil {
		return b.wide
	}
	return func(id circuit.NodeID, dst []float64) error {
		if b.params == nil {
			return fmt.Errorf("%w: node %d; initialise it", format.ErrNoParams, id)
		}
		narrow := make([]float32, len(dst))
		if err := b.params(id, narrow); err != nil {
			return err
		}
		for i, v := range narrow {
			dst[i] = float64(v)
		}
		return nil
	}
}

// Digest names the compiled circuit.
func (b *Blueprint) Digest() [32]byte {
	if b.Code == nil {
		return b.Program.Digest()
	}
	text := b.Code.Module.Text()
	if b.Code.Exact != nil {
		text += b.Code.Exact.Text()
	}
	return sha256.Sum256([]byte(text))
}

// errCode is for what code cannot do.
var errCode = fmt.Errorf("%w: the model runs as code, which computes log-likelihoods and classes alone: its histograms have breaks of their own, or the path was chosen", ErrOptions)

// Tensor returns the engine that a runner of Pool is; an error if the circuit runs as code.
func Tensor(r engine.Runner) (*engine.Engine, error) {
	if e, ok := r.(*engine.Engine); ok {
		return e, nil
	}
	return nil, errCode
}

// code returns the circuit as code on a device.
func (b *Blueprint) code(ctx context.Context, l Load) (*engine.Code, error) {
	l = l.forCode()
	if err := b.check(l); err != nil {
		return nil, err
	}
	at, err := l.place()
	if err != nil {
		return nil, err
	}
	dev, err := at.Open(l.device())
	if err != nil {
		return nil, err
	}
	c, err := engine.NewCode(ctx, dev, b.codeModel(), engine.CodeOptions{Rows: l.Rows, Schema: b.Schema, OwnsDevice: true})
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	return c, nil
}

func (b *Blueprint) codeModel() engine.CodeModel {
	return codeModel(b.Code, func(variable int) (engine.CodeModel, error) {
		p, err := spn.CompileClassesFor(b.Graph, b.params64(), variable, b.how.Numbers)
		if err != nil {
			return engine.CodeModel{}, err
		}
		return codeModel(p, nil), nil
	})
}

// codeModel returns a program as the engine runs it.
func codeModel(p *spn.Program, classes func(variable int) (engine.CodeModel, error)) engine.CodeModel {
	m := engine.CodeModel{Module: p.Module, Exact: p.Exact, Least: p.Least, Classes: classes}
	if p.Space == spn.Scaled {
		m.Again = p.Again
	}
	return m
}

// forCode puts the CPU in where the device is a choice: code has not run on a card yet, so a card
// computes it where it is asked for by name.
func (l Load) forCode() Load {
	l.Options = l.Options.withDefaults()
	if l.Device == "" || l.Device == "auto" {
		l.Device = "cpu"
	}
	return l
}

// codeMemory plans what code takes: of each of the modules what the device needs to run it, and the
// rows of a launch on the device and on the host.
func (b *Blueprint) codeMemory(l Load) (MemoryPlan, error) {
	l = l.forCode()
	at, err := l.place()
	if err != nil {
		return MemoryPlan{}, err
	}
	c := b.codeModel()
	m := MemoryPlan{Rows: l.Rows, Data: l.Tables + tableBytes(b.Train), Values: c.RowBytes(l.Rows)}
	for _, mod := range []*simt.Module{c.Module, c.Exact} {
		if mod == nil {
			continue
		}
		work, err := at.PlanCode(mod, l.device())
		if err != nil {
			return MemoryPlan{}, err
		}
		m.Scratch += work.Scratch
		m.Program += work.Program
	}
	const perNode = 400
	m.Program += perNode * int64(len(b.Graph.Nodes))
	live := m.Values + m.Scratch + m.Program + m.Data
	m.Runtime = runtimeBytes + live/slack
	m.Total = live + m.Runtime
	return m, nil
}
