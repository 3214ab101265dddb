package job

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/simnet"
	"github.com/pce-engine/pce/internal/atomicfile"
	"github.com/pce-engine/pce/run"
)

// toyKind is a kind of job that this test registers. Its questions are about one,
// two or three rows in turn, and its answers are hashes of all that they depend on,
// of different lengths.
type toyKind struct {
	worker  string                        // that computes; "": the coordinator's side
	answers func(worker string, rows int) // called with each answer that a worker has made; may be nil
	asked   func(first int)               // called with the first row of each question
	kept    func(answers int)             // called with the number of answers before each one is kept
}

// toySettings are what a worker loads, and the config of the job.
type toySettings struct {
	Salt      string `json:"salt"`
	Questions int    `json:"questions"`
}

func (s toySettings) model() [32]byte { return sha256.Sum256([]byte(s.Salt)) }

// answer is the answer to a request.
func (s toySettings) answer(request []byte) []byte {
	h := sha256.Sum256(append([]byte(s.Salt), request...))
	return h[:1+len(request)%len(h)]
}

// request is question i, about the rows first to first+rows-1.
func (s toySettings) request(i, first int) (request []byte, rows int) {
	return fmt.Appendf(nil, "question %d of row %d", i, first), 1 + i%3
}

func (k toyKind) Load(_ context.Context, in *Loading) (cluster.Session, error) {
	s := &toyAnswerer{kind: k}
	if err := in.Decode(&s.settings); err != nil {
		return nil, err
	}
	return Answering(s), in.Check(s.settings.model())
}

func (k toyKind) Lead(ctx context.Context, l *Lead, j *Job) error {
	var s toySettings
	if err := ReadJSON([]byte(j.Config), &s); err != nil {
		return Bad(j.ID, "%w", err)
	}
	if done, err := l.Answered("toy.out"); done || err != nil {
		return err
	}
	l.Transport, l.Workers = "memory", 2
	if err := l.Gather(ctx); err != nil {
		return err
	}
	if err := l.Begin(ctx, s.model(), s); err != nil {
		return err
	}
	return l.Ask(ctx, &toyQuestions{kind: k, settings: s}, &toyAnswers{kind: k}, "toy.out")
}

// toyAnswerer takes a tenth of a second for an answer.
type toyAnswerer struct {
	kind     toyKind
	settings toySettings
}

func (a *toyAnswerer) Answer(ctx context.Context, request []byte) ([]byte, error) {
	select {
	case <-time.After(100 * time.Millisecond):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if a.kind.answers != nil {
		a.kind.answers(a.kind.worker, 1)
	}
	return a.settings.answer(request), nil
}

func (a *toyAnswerer) Info() cluster.SessionInfo { return cluster.SessionInfo{Device: "toy"} }
func (a *toyAnswerer) Close() error              { return nil }

type toyQuestions struct {
	kind     toyKind
	settings toySettings
	at, row  int
}

func (q *toyQuestions) Skip(_ context.Context, rows int64) error {
	for ; q.row < int(rows); q.at++ {
		_, n := q.settings.request(q.at, q.row)
		q.row += n
	}
	if q.row != int(rows) {
		return fmt.Errorf("%d rows have answers, and no question ends there", rows)
	}
	return nil
}

func (q *toyQuestions) Next(context.Context) ([]byte, int, error) {
	if q.at == q.settings.Questions {
		return nil, 0, io.EOF
	}
	if q.kind.asked != nil {
		q.kind.asked(q.row)
	}
	request, rows := q.settings.request(q.at, q.row)
	q.at, q.row = q.at+1, q.row+rows
	return request, rows, nil
}

func (q *toyQuestions) Total() int64 { return 0 }
func (q *toyQuestions) Close() error { return nil }

type toyAnswers struct {
	kind toyKind
	n    int
}

func (a *toyAnswers) Keep(answer []byte, rows int) ([]byte, error) {
	if a.kind.kept != nil {
		a.kind.kept(a.n)
	}
	a.n++
	return fmt.Appendf(nil, "%d rows: %x\n", rows, answer), nil
}

func (a *toyAnswers) Write(_ context.Context, path string, kept io.Reader, rows int64) error {
	return atomicfile.Write(path, 0o644, func(w io.Writer) error {
		if _, err := io.Copy(w, kept); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w, "%d rows in all\n", rows)
		return err
	})
}

// local is the result of a job without a cluster.
func (s toySettings) local() []byte {
	var out bytes.Buffer
	row := 0
	for i := range s.Questions {
		request, rows := s.request(i, row)
		fmt.Fprintf(&out, "%d rows: %x\n", rows, s.answer(request))
		row += rows
	}
	fmt.Fprintf(&out, "%d rows in all\n", row)
	return out.Bytes()
}

// toyCluster is a broker, two workers and a coordinator that know the toy alone, on
// a network in memory.
type toyCluster struct {
	t   *testing.T
	net *simnet.Network
	all sync.WaitGroup

	mu    sync.Mutex
	ended map[string]context.CancelFunc // by worker
}

// kill ends a process as SIGKILL does: nothing that it does reaches anybody.
func (c *toyCluster) kill(id string) {
	c.net.Crash(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if end := c.ended[id]; end != nil {
		end()
	}
}

func (c *toyCluster) startWorker(id, dir string, answers func(string, int)) {
	files, err := NewFiles(dir, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	kinds := Kinds{}
	kinds.Register("toy", toyKind{worker: id, answers: answers})
	l, err := NewLoader(kinds, files, run.Options{Device: "cpu", Threads: 1})
	if err != nil {
		c.t.Fatal(err)
	}
	host := c.net.Host(id)
	w, err := cluster.NewWorker(cluster.WorkerOptions{
		ID: id, Bus: host.Bus(), Peers: []cluster.Peers{host.Peers()}, Loader: l, Dir: dir, Member: cluster.Member{Device: "toy", Paths: l.Paths()},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	c.mu.Lock()
	c.ended[id] = end
	c.mu.Unlock()
	c.all.Go(func() {
		defer host.Peers().Close()
		if err := w.Run(ctx); err != nil && ctx.Err() == nil {
			c.t.Errorf("%s: %v", id, err)
		}
	})
}

// do does a job on a new life of the coordinator, which keeps its runs in dir.
func (c *toyCluster) do(ctx context.Context, dir string, kind toyKind, id string, text []byte) error {
	host := c.net.Host("c-1")
	defer host.Peers().Close()
	files, err := NewFiles(dir, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	kinds := Kinds{}
	kinds.Register("toy", kind)
	r := &Runner{
		Coordinator: cluster.NewCoordinator(cluster.CoordinatorOptions{ID: "c-1", Bus: host.Bus(), Peers: []cluster.Peers{host.Peers()}}),
		Bus:         host.Bus(), Kinds: kinds, Dir: dir, Files: files, Log: io.Discard,
	}
	return r.Do(ctx, id, text)
}

// TestToyKind registers a kind of job and does one on two workers. One of them dies
// in the middle, and so does the coordinator: the next one goes on from what its
// journal says. The result has the bytes of a local computation.
func TestToyKind(t *testing.T) {
	settings := toySettings{Salt: "sea", Questions: 400}
	config, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	text, err := (&Job{Version: Version, ID: "run-1", Name: "toy", Kind: "toy", Config: string(config)}).Encode(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	want := settings.local()
	base := t.TempDir()
	dirs := map[string]string{}
	for _, name := range []string{"first", "second", "w0", "w1"} {
		dirs[name] = filepath.Join(base, name)
		if err := os.Mkdir(dirs[name], 0o700); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		c := &toyCluster{t: t, net: simnet.New(1, simnet.Faults{MinDelay: time.Millisecond, MaxDelay: 5 * time.Millisecond}), ended: map[string]context.CancelFunc{}}
		var mu sync.Mutex
		made := map[string]int{}
		answers := func(worker string, n int) {
			mu.Lock()
			defer mu.Unlock()
			if made[worker] += n; worker == "w0" && made[worker] == 50 {
				go c.kill("w0")
			}
		}
		for _, id := range []string{"w0", "w1"} {
			c.startWorker(id, dirs[id], answers)
		}

		// The first coordinator is killed before answer 250: what it leaves is what is in
		// its files at that moment.
		ctx, cancel := context.WithCancel(t.Context())
		err := c.do(ctx, dirs["first"], toyKind{kept: func(n int) {
			if n != 250 {
				return
			}
			for _, name := range []string{AnswersFile, JournalFile} {
				to := filepath.Join(dirs["second"], "runs", "run-1")
				if err := errors.Join(os.MkdirAll(to, 0o755), os.WriteFile(filepath.Join(to, name), readFile(t, dirs["first"], "runs", "run-1", name), 0o644)); err != nil {
					t.Error(err)
				}
			}
			c.net.Crash("c-1")
			cancel()
		}}, "run-1", text)
		if err == nil {
			t.Fatal("the killed coordinator is done")
		}
		var left mark
		if err := json.Unmarshal(readFile(t, dirs["second"], "runs", "run-1", JournalFile), &left); err != nil || left.Rows < 100 || left.Rows >= 500 {
			t.Fatalf("the journal says %+v, %v", left, err)
		}
		if info, err := os.Stat(filepath.Join(dirs["second"], "runs", "run-1", AnswersFile)); err != nil || info.Size() <= left.Bytes {
			t.Fatalf("no answers are beyond what the journal says: %v, %v", info.Size(), err)
		}

		c.startWorker("w0", dirs["w0"], answers) // a job wants two

		first := -1
		err = c.do(t.Context(), dirs["second"], toyKind{asked: func(row int) {
			if first < 0 {
				first = row
			}
		}}, "run-1", text)
		if err != nil {
			t.Fatal(err)
		}
		if int64(first) != left.Rows {
			t.Errorf("the second coordinator begins with row %d, its journal has the answers about %d", first, left.Rows)
		}
		mu.Lock()
		if made["w0"] < 50 || made["w1"] < 150 {
			t.Errorf("answers of the workers: %v", made)
		}
		mu.Unlock()
		if err := c.do(t.Context(), dirs["second"], toyKind{asked: func(int) { t.Error("a job that is done is asked again") }}, "run-1", text); err != nil {
			t.Error(err)
		}
		c.kill("w0")
		c.kill("w1")
		c.all.Wait()
	})
	if got := readFile(t, dirs["second"], "runs", "run-1", "toy.out"); !bytes.Equal(got, want) {
		t.Errorf("the result has %d bytes, want %d, and others", len(got), len(want))
	}
	left, err := filepath.Glob(filepath.Join(dirs["second"], "runs", "run-1", "answers*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestKinds refuses kinds that are not there, and two of one name.
func TestKinds(t *testing.T) {
	k := Kinds{}
	k.Register("toy", toyKind{})
	k.Register("another", toyKind{})
	if _, err := k.find("run-1", "toy"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"", "Toy", "toys", strings.Repeat("x", 1000)} {
		if _, err := k.find("run-1", name); !errors.Is(err, cluster.ErrJob) || !strings.Contains(err.Error(), "want one of another, toy") || len(err.Error()) > 200 {
			t.Errorf("kind %.20q: %v", name, err)
		}
	}
	for name, register := range map[string]func(){
		"twice": func() { k.Register("toy", toyKind{}) }, "no name": func() { k.Register("", toyKind{}) }, "nothing": func() { k.Register("x", nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: registered", name)
				}
			}()
			register()
		}()
	}
}
