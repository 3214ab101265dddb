package tensor_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/kernels/cuda"
	executor "github.com/pce-engine/pce/kernels/cuda/tensor"
	"github.com/pce-engine/pce/kernels/emulator"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

var (
	mutants     = flag.Int("mutants", 24, "instructions of kernels to delete, one at a time")
	mutantsSeed = flag.Uint64("seed", 1, "which instructions")
)

// surgeon is an emulator on which a kernel can be replaced while programs are
// loaded. It keeps graphs itself, so that they launch the replacement too.
type surgeon struct {
	*emulator.Emulator
	texts    [][]byte // of modules, as loaded
	names    map[cuda.Function]string
	shared   map[string]int // bytes of dynamic shared memory, of kernels
	replaced map[cuda.Function]cuda.Function
	launched map[string]bool
	memory   []region

	recording bool
	record    []func() error
	graphs    map[cuda.Graph][]func() error
}

// region is memory of the card, and what it held at the last look.
type region struct {
	at    cuda.Ptr
	bytes []byte
}

func newSurgeon(processors int) *surgeon {
	return &surgeon{
		// A deleted step of a loop is to be found soon.
		// Warps in random order meet what a barrier less lets them meet.
		Emulator: emulator.New(emulator.Options{Threads: 1, Seed: 1, Jumps: 1 << 14, Multiprocessors: processors}),
		shared:   map[string]int{},
		names:    map[cuda.Function]string{}, replaced: map[cuda.Function]cuda.Function{},
		launched: map[string]bool{}, graphs: map[cuda.Graph][]func() error{},
	}
}

func (s *surgeon) Alloc(bytes int64) (cuda.Ptr, error) {
	p, err := s.Emulator.Alloc(bytes)
	if err == nil {
		s.memory = append(s.memory, region{p, make([]byte, bytes)})
	}
	return p, err
}

func (s *surgeon) Load(text []byte) (cuda.Module, error) {
	s.texts = append(s.texts, text)
	return s.Emulator.Load(text)
}

func (s *surgeon) Function(m cuda.Module, name string, shared int) (cuda.Function, cuda.FunctionInfo, error) {
	f, info, err := s.Emulator.Function(m, name, shared)
	s.names[f], s.shared[name] = name, shared
	return f, info, err
}

// do does work, now or when the graph that is recorded is launched.
func (s *surgeon) do(work func() error) error {
	if s.recording {
		s.record = append(s.record, work)
		return nil
	}
	return work()
}

func (s *surgeon) Launch(l cuda.Launch, st cuda.Stream) error {
	return s.do(func() error {
		s.launched[s.names[l.Function]] = true
		l := l
		if f, ok := s.replaced[l.Function]; ok {
			l.Function = f
		}
		return s.Emulator.Launch(l, st)
	})
}

func (s *surgeon) CopyIn(dst cuda.Ptr, src []byte, st cuda.Stream) error {
	return s.do(func() error { return s.Emulator.CopyIn(dst, src, st) })
}

func (s *surgeon) CopyOut(dst []byte, src cuda.Ptr, st cuda.Stream) error {
	return s.do(func() error { return s.Emulator.CopyOut(dst, src, st) })
}

func (s *surgeon) Clear(dst cuda.Ptr, bytes int64, st cuda.Stream) error {
	return s.do(func() error { return s.Emulator.Clear(dst, bytes, st) })
}

func (s *surgeon) Capture(cuda.Stream) error {
	s.recording, s.record = true, nil
	return nil
}

func (s *surgeon) Captured(cuda.Stream) (cuda.Graph, error) {
	g := cuda.Graph(len(s.graphs) + 1)
	s.graphs[g], s.recording = s.record, false
	return g, nil
}

func (s *surgeon) LaunchGraph(g cuda.Graph, _ cuda.Stream) error {
	for _, work := range s.graphs[g] {
		if err := work(); err != nil {
			return err
		}
	}
	return nil
}

func (s *surgeon) FreeGraph(cuda.Graph) error { return nil }

// replace makes a function run in the place of a kernel.
func (s *surgeon) replace(kernel string, f cuda.Function) {
	for of, name := range s.names {
		if name == kernel {
			s.replaced[of] = f
		}
	}
}

// victim is an instruction that is to be deleted.
type victim struct {
	kernel *kernelText
	line   int
}

// theatre is the workload for blocks of one size, on a device of its own.
type theatre struct {
	name    string
	block   int
	works   []namedWork // to be noticed by
	before  []namedWork // done first, so that memory holds something else than what is to be written
	surgeon *surgeon
	dev     *cuda.Device
	stream  cuda.Stream
	kernels []*kernelText // of the module that was loaded
	head    string        // of its text
	scenes  []*scene
	victims []victim
}

// stage is a circuit of the workload, built when it is first needed.
type stage struct {
	subject
	*job
	memory []region // its own
}

// scene is one thing that is done with one circuit, and what came of it when it was
// first done.
type scene struct {
	*stage
	name     string
	run      work
	want     *outcome // nil: not done yet
	launched map[string]bool
}

// wideKernels are those that run where a launch has enough for all multiprocessors.
var wideKernels = []string{
	tensor.KernelFit, tensor.KernelForwardWide, tensor.KernelBackwardWide, tensor.KernelMoveWide, tensor.KernelCountWide,
}

// cast says which kernels a theatre plays.
type cast int

const (
	inNarrow  cast = iota // those of training and samples
	inWide                // those of them on wide tiles
	inQueries             // those that programs for queries have alone
)

// open makes a device and loads its kernels.
func open(t *testing.T, block int, c cast) *theatre {
	t.Helper()
	name, list, processors := fmt.Sprintf("blocks of %d", block), subjects(block), 0
	th := &theatre{block: block, works: works}
	switch c {
	case inWide:
		name, list, processors = name+" wide", wideSubjects(), 1
	case inQueries:
		name, th.works = "queries in "+name, queryWorks
		for _, units := range []int{20, max(40, 2*block-4)} { // kernels of maxima multiply for 8, 16, 32 or 64 outputs at a time
			list = append(list, subject{fmt.Sprintf("alphabets of %d", units), func() *circuit.Graph { return alphabets(units) }, false, 70})
		}
		th.before = works[slices.IndexFunc(works, func(w namedWork) bool { return w.name == "step" }):][:1] // modes depend on parameters alone
	}
	th.name, th.surgeon = name, newSurgeon(processors)
	var err error
	if th.dev, err = executor.Open("emulator", func() (cuda.Driver, error) { return th.surgeon, nil }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { th.dev.Close() })
	if th.stream, err = th.surgeon.NewStream(); err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		st := &stage{subject: p}
		for _, w := range th.works {
			th.scenes = append(th.scenes, &scene{stage: st, name: p.name + ", " + w.name, run: w.run})
		}
	}
	th.build(t, th.scenes[0].stage)
	texts := th.surgeon.texts
	if want := map[cast]int{inNarrow: 1, inWide: 1, inQueries: 2}[c]; len(texts) != want { // the engine's, and that for queries
		t.Fatalf("%d modules were loaded, want %d", len(texts), want)
	}
	th.head, th.kernels = split(string(texts[len(texts)-1]))
	th.kernels = slices.DeleteFunc(th.kernels, func(k *kernelText) bool {
		if c == inQueries {
			return bytes.Contains(texts[0], []byte(entry+k.name+"("))
		}
		return slices.Contains(wideKernels, k.name) != (c == inWide)
	})
	return th
}

// build makes a circuit and fills its memory with what works on other rows leave.
func (th *theatre) build(t *testing.T, st *stage) {
	t.Helper()
	first := len(th.surgeon.memory)
	st.job = st.subject.build(t, th.dev, th.block)
	for _, w := range slices.Concat(th.before, th.works) {
		if err := w.run(st.job, t.Context(), st.other, &outcome{}); err != nil {
			t.Fatal(st.subject.name, w.name, err)
		}
	}
	st.memory = th.surgeon.memory[first:]
	if err := th.dev.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, r := range st.memory {
		if err := th.surgeon.Emulator.CopyOut(r.bytes, r.at, th.stream); err != nil {
			t.Fatal(err)
		}
	}
	if err := th.surgeon.Wait(th.stream); err != nil {
		t.Fatal(err)
	}
}

// first does a scene for the first time.
func (th *theatre) first(t *testing.T, s *scene) {
	t.Helper()
	if s.job == nil {
		th.build(t, s.stage)
	}
	th.surgeon.launched, s.want = map[string]bool{}, &outcome{}
	if err := th.play(t.Context(), s, s.want); err != nil {
		t.Fatal(s.name, err)
	}
	s.launched = th.surgeon.launched
}

// play does what a scene does, from the same memory each time.
func (th *theatre) play(ctx context.Context, s *scene, out *outcome) error {
	_ = th.dev.Sync(ctx) // what an earlier play has left may be at fault
	for _, r := range s.memory {
		if err := th.surgeon.Emulator.CopyIn(r.at, r.bytes, th.stream); err != nil {
			return err
		}
	}
	if err := th.surgeon.Wait(th.stream); err != nil {
		return err
	}
	if err := s.Write(ctx); err != nil {
		return err
	}
	return s.run(s.job, ctx, s.batch, out)
}

// witness deletes a line of a kernel and says what notices, "" if nothing does.
func (th *theatre) witness(t *testing.T, k *kernelText, line int) string {
	t.Helper()
	s := th.surgeon
	m, err := s.Emulator.Load([]byte(th.head + k.without(line)))
	if err != nil {
		return err.Error()
	}
	defer func() { _ = s.Emulator.Unload(m) }() // it was loaded
	f, _, err := s.Emulator.Function(m, k.name, s.shared[k.name])
	if err != nil {
		return err.Error()
	}
	for _, scene := range th.scenes {
		if scene.want == nil {
			th.first(t, scene)
		}
		if !scene.launched[k.name] {
			continue
		}
		var got outcome
		s.replace(k.name, f)
		err := th.play(t.Context(), scene, &got)
		clear(s.replaced)
		if err != nil {
			return err.Error()
		}
		if !slices.Equal(got.words, scene.want.words) {
			return scene.name + ": other bits"
		}
	}
	return ""
}

const survivorsFile = "../../ptx/tensor/testdata/survivors.txt"

// survivor is an instruction that a kernel does without, for a reason. Lines before
// it may stand in front. Registers and labels have no numbers: these change with
// every line above.
type survivor struct {
	kernel string
	insts  []string
	reason string
}

// survivors reads the file of survivors: a kernel, its lines, a reason, with tabs
// between them.
func survivors(t *testing.T) (list []survivor) {
	t.Helper()
	text, err := os.ReadFile(survivorsFile)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.Split(line, "\t")
		if len(parts) != 3 || parts[2] == "" {
			t.Fatalf("%s:%d: %q; want a kernel, instructions and a reason, with tabs between them", survivorsFile, i+1, line)
		}
		list = append(list, survivor{parts[0], strings.Split(parts[1], " | "), parts[2]})
	}
	return list
}

// explains reports whether a line of a kernel, or of its filled twin, is the survivor.
func (s *survivor) explains(k *kernelText, line int) bool {
	first := line - len(s.insts) + 1
	if s.kernel != k.name && tensor.Filled(s.kernel) != k.name || first < 0 {
		return false
	}
	for i, want := range s.insts {
		if k.nameless(first+i) != want {
			return false
		}
	}
	return true
}

// TestMutants deletes instructions of kernels, one at a time, and wants each
// deletion to be noticed: by the verifier, by a fault of the emulator or by other
// bits of a result. Others are explained, or dead: nothing reads what they write.
func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("works through circuits for each deletion; run without -short")
	}
	t.Parallel()
	known := survivors(t)
	theatres := []*theatre{
		open(t, 1, inNarrow), open(t, 8, inNarrow), open(t, 32, inNarrow), open(t, 32, inWide),
		open(t, 1, inQueries), open(t, 8, inQueries), open(t, 32, inQueries),
	}
	rng := rand.New(rand.NewPCG(*mutantsSeed, 1))
	for range *mutants {
		th := theatres[rng.IntN(len(theatres))]
		k := th.kernels[rng.IntN(len(th.kernels))]
		th.victims = append(th.victims, victim{k, k.insts[rng.IntN(len(k.insts))]})
	}
	for _, th := range theatres {
		t.Run(th.name, func(t *testing.T) {
			t.Parallel()
			for _, v := range th.victims {
				th.kill(t, v, known)
			}
			th.encore(t)
		})
	}
}

// kill deletes a line and wants somebody to notice.
func (th *theatre) kill(t *testing.T, v victim, known []survivor) {
	t.Helper()
	k := v.kernel
	what := "nothing reads what it writes"
	if !k.unread(v.line) {
		what = th.witness(t, k, v.line)
	}
	for _, s := range known {
		if what == "" && s.explains(k, v.line) {
			what = "explained: " + s.reason
		}
	}
	t.Logf("kernel %s, line %d without %s: %s", k.name, v.line, strings.TrimSpace(k.lines[v.line]), what)
	if what == "" {
		t.Errorf("kernel %s, line %d: nothing notices that %q is missing; extend the workload, drop the instruction or explain it in %s",
			k.name, v.line, k.nameless(v.line), survivorsFile)
	}
}

// encore does each scene once more, with the kernels as they were.
func (th *theatre) encore(t *testing.T) {
	t.Helper()
	for _, s := range th.scenes {
		if s.want == nil {
			continue
		}
		var got outcome
		if err := th.play(t.Context(), s, &got); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.words, s.want.words) {
			t.Errorf("%s: other bits than at first", s.name)
		}
	}
}
