package job

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/run"
)

// maxDescription bounds the description of a run.
const maxDescription = 256 << 20

// runBody is the body of a cluster.Spec.
type runBody struct {
	Description FileRef `json:"description"`
}

// description is all that a session is made of. It is JSON, kept by the broker.
type description struct {
	Run      string          `json:"run"`
	Kind     string          `json:"kind"`
	Settings json.RawMessage `json:"settings"`
	// Files are the digests of all contents that the settings name. Copies of others
	// are removed when the run is loaded.
	Files []string `json:"files,omitempty"`
}

// Loader makes the sessions of a worker.
type Loader struct {
	kinds   Kinds
	files   *Files
	options run.Options
	device  kernels.Info
	paths   []string // kernel paths that it takes part with, best first
}

var _ cluster.Loader = (*Loader)(nil)

// NewLoader returns the loader of a worker that knows these kinds of jobs, opens
// files as files says and computes as o says.
func NewLoader(kinds Kinds, files *Files, o run.Options) (*Loader, error) {
	device, paths, err := run.Probe(o)
	if err != nil {
		return nil, err
	}
	if device.KernelPath != paths[0] {
		paths = []string{device.KernelPath} // PCE_CPU or the options name it
	}
	return &Loader{kinds, files, o, device, paths}, nil
}

// Device is the name of the worker's device.
func (l *Loader) Device() string { return l.device.Name }

// Paths lists the kernel paths that the worker takes part with, best first: all of its
// device, or the one that PCE_CPU or its options name in place of the best.
func (l *Loader) Paths() []string { return l.paths }

// Load makes the session of a run.
func (l *Loader) Load(ctx context.Context, spec cluster.Spec, blobs cluster.Blobs) (cluster.Session, error) {
	d, err := l.describe(ctx, spec, blobs)
	if err != nil {
		return nil, err
	}
	o := l.options
	switch {
	case l.device.Name == "cpu":
		o.KernelPath = spec.Path
	case spec.Path != "" && spec.Path != l.paths[0]:
		return nil, fmt.Errorf("%w: run %s has the kernel path %.40q, this device %s", kernels.ErrDevice, spec.Run, spec.Path, l.paths[0])
	}
	kind, err := l.kinds.find(spec.Run, d.Kind)
	if err != nil {
		return nil, err
	}
	return kind.Load(ctx, &Loading{Run: spec.Run, Settings: d.Settings, Options: o, Model: spec.Model, Files: l.files, Blobs: blobs})
}

// describe reads the description of a run, and removes the copies of files that other runs
// needed, since a worker has one run at a time. A description that is too large, damaged or of
// another run is the job's fault.
func (l *Loader) describe(ctx context.Context, spec cluster.Spec, blobs cluster.Blobs) (*description, error) {
	var body runBody
	if err := ReadJSON(spec.Body, &body); err != nil {
		return nil, Bad(spec.Run, "its body: %v", err)
	}
	ref := body.Description
	if ref.Size > maxDescription {
		return nil, Bad(spec.Run, "description of %d bytes, want 0..%d", ref.Size, maxDescription)
	}
	ref.Path, ref.Blob = "", true
	path, err := l.files.Open(ctx, ref, blobs)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	d := new(description)
	if err := ReadJSON(text, d); err != nil {
		return nil, Bad(spec.Run, "its description: %v", err)
	}
	if d.Run != spec.Run {
		return nil, Bad(spec.Run, "it has the description of run %.80q", d.Run)
	}
	keep := map[string]bool{ref.Digest: true}
	for _, digest := range d.Files {
		keep[digest] = true
	}
	return d, l.files.Prune(keep)
}

func hexOf(digest [32]byte) string { return hex.EncodeToString(digest[:]) }

// ReadJSON reads one value without unknown keys, as all that travels between members is read.
func ReadJSON(text []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("more than one value")
	}
	return nil
}
