package job

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/simnet"
	"github.com/pce-engine/pce/run"
)

// TestLoaderRefuses wants one line, and the class that says whether another
// worker may do better.
func TestLoaderRefuses(t *testing.T) {
	data := t.TempDir()
	rows := imageFiles(t, data, 4)
	bus := simnet.New(1, simnet.Faults{}).Host("c").Bus()
	lead := testLead(t, bus, data)
	o := trainOptions(t, rows, "hclt")
	b, err := run.Build(t.Context(), o.Structure, o.Train, o.Compile)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	describe := func() *trainSettings {
		d, err := lead.trainSettings(t.Context(), b, run.TrainLoad(o, b.Train.Rows()), o.Compile, rows, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for name, bad := range map[string]struct {
		roots []string
		edit  func(*trainSettings)
		spec  func(*cluster.Spec)
		kind  string
		final bool
		want  string
	}{
		"good":         {roots: []string{data}},
		"no root":      {want: "lies in no root"},
		"other root":   {roots: []string{t.TempDir()}, want: "lies in no root"},
		"other model":  {roots: []string{data}, spec: func(s *cluster.Spec) { s.Model = strings.Repeat("0", 64) }, want: "give all members the same version"},
		"unknown kind": {roots: []string{data}, kind: "mine", final: true, want: `unknown kind "mine", want one of `},
		"other kind":   {roots: []string{data}, kind: "toy", final: true, want: "its settings"},
		"damaged":      {roots: []string{data}, edit: func(d *trainSettings) { d.Circuit = d.Circuit[:40] }, final: true, want: "bad model"},
		"no rows":      {roots: []string{data}, edit: func(d *trainSettings) { delete(d.Sources, trainSource) }, final: true, want: "no training rows"},
		"no body":      {roots: []string{data}, spec: func(s *cluster.Spec) { s.Body = []byte(`{"x":1}`) }, final: true, want: "its body"},
		"other run":    {roots: []string{data}, spec: func(s *cluster.Spec) { s.Run = "run-2" }, final: true, want: `the description of run "run-1"`},
		"kernel path":  {roots: []string{data}, spec: func(s *cluster.Spec) { s.Path = "abacus" }, want: "abacus"},
		"other contents": {roots: []string{data}, edit: func(d *trainSettings) {
			s := d.Sources[trainSource]
			s.Files = append([]FileRef(nil), s.Files...)
			s.Files[0].Digest = strings.Repeat("0", 64)
			d.Sources[trainSource] = s
		}, want: "has other contents here"},
		"other rows": {roots: []string{data}, edit: func(d *trainSettings) {
			s := d.Sources[trainSource]
			s.Rows++
			d.Sources[trainSource] = s
		}, want: "rows here"},
		"not with the broker": {edit: func(d *trainSettings) {
			s := d.Sources[trainSource]
			s.Files, s.Table = nil, &FileRef{Name: "rows", Digest: strings.Repeat("0", 64), Blob: true}
			d.Sources = map[string]sourceRef{trainSource: s}
		}, want: "no record"},
		"a builtin that is a file": {edit: func(d *trainSettings) {
			s := d.Sources[trainSource]
			s.Builtin = "/etc/passwd"
			d.Sources = map[string]sourceRef{trainSource: s}
		}, final: true, want: "not a builtin source"},
	} {
		t.Run(name, func(t *testing.T) {
			d := describe()
			if bad.edit != nil {
				bad.edit(d)
			}
			lead.Kind = cmp.Or(bad.kind, "train")
			spec, err := lead.publish(t.Context(), b.Program.Digest(), d, nil)
			if err != nil {
				t.Fatal(err)
			}
			if bad.spec != nil {
				bad.spec(&spec)
			}
			l := testLoader(t, bad.roots, 1)
			s, err := l.Load(t.Context(), spec, bus.Blobs())
			if bad.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				s.Close()
				return
			}
			if err == nil || errors.Is(err, cluster.ErrJob) != bad.final || !strings.Contains(err.Error(), bad.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v; want one line with %q, for all workers: %t", err, bad.want, bad.final)
			}
		})
	}
}

// TestLoaderPaths wants a worker to offer every kernel path of its processor, or the one
// that PCE_CPU or its options name in place of the best: a job computes what the machine
// does without a cluster.
func TestLoaderPaths(t *testing.T) {
	t.Setenv("PCE_CPU", "")
	best, err := NewLoader(kinds(), nil, run.Options{Device: "cpu", Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	all := best.Paths()
	if all[len(all)-1] != "generic" {
		t.Errorf("paths %q, want generic as the last", all)
	}
	for _, name := range all {
		for _, by := range []string{"variable", "option"} {
			o, variable, want := run.Options{Device: "cpu", Threads: 1}, "", []string{name}
			if by == "variable" {
				variable = name
			} else {
				o.KernelPath = name
			}
			if name == all[0] {
				want = all // the machine's choice, with or without the name
			}
			t.Setenv("PCE_CPU", variable)
			l, err := NewLoader(kinds(), nil, o)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(l.Paths(), want) {
				t.Errorf("with %q by the %s: paths %q, want %q", name, by, l.Paths(), want)
			}
		}
	}
}
