package natsbus

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster"
)

// The test binary is the broker of some tests, so that it can be killed.
const (
	childDir  = "NATSBUS_TEST_DIR"
	childPort = "NATSBUS_TEST_PORT"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		port, _ := strconv.Atoi(os.Getenv(childPort))
		b, err := StartBroker(BrokerOptions{Dir: dir, Port: port, SyncAlways: true})
		if err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		fmt.Println(b.Port())
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent has gone
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child is a broker in a process of its own.
type child struct {
	dir  string
	port int
	cmd  *exec.Cmd
}

func startChild(t *testing.T) *child {
	c := &child{dir: t.TempDir()}
	c.start(t)
	t.Cleanup(c.kill)
	return c
}

func (c *child) start(t *testing.T) {
	t.Helper()
	c.cmd = exec.Command(os.Args[0])
	c.cmd.Env = append(os.Environ(), childDir+"="+c.dir, childPort+"="+strconv.Itoa(c.port))
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if c.port, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
		t.Fatalf("broker: %s", line)
	}
}

// kill leaves no time to write anything.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

func (c *child) url() string { return fmt.Sprintf("nats://127.0.0.1:%d", c.port) }

// TestKill kills the broker again and again while everything goes on.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("keeps a broker busy over three kills; run without -short")
	}
	t.Parallel()
	broker := startChild(t)
	x := connect(t, Options{URLs: broker.url()})
	y := connect(t, Options{URLs: broker.url()})
	ctx := within(t, 4*time.Minute)
	stop := make(chan struct{})
	stopped := func() bool {
		select {
		case <-stop:
			return true
		default:
			return false
		}
	}
	var all sync.WaitGroup
	var rounds [4]atomic.Int64 // of updates, messages, blobs and jobs, that were confirmed

	// A counter: each update adds one, none is counted twice or lost.
	all.Go(func() {
		k := x.Bucket(cluster.RunsBucket)
		revision, err := k.Create(ctx, "counter", []byte("0"))
		for n := 1; err == nil && !stopped(); n++ {
			var next uint64
			next, err = k.Update(ctx, "counter", []byte(strconv.Itoa(n)), revision)
			if err == nil && next <= revision {
				t.Errorf("revision %d after %d", next, revision)
			}
			revision = next
			rounds[0].Store(int64(n))
		}
		if err != nil {
			t.Errorf("update: %v", err)
		}
	})
	// Messages come again after each restart.
	var heard atomic.Int64
	if _, err := y.Listen("c-heard", func([]byte) { heard.Add(1) }); err != nil {
		t.Fatal(err)
	}
	all.Go(func() {
		for !stopped() {
			if err := x.Send("c-heard", []byte("x")); err != nil && !errors.Is(err, cluster.ErrUnreachable) {
				t.Errorf("send: %v", err)
			}
			rounds[1].Store(heard.Load())
			_ = pause(ctx, 0)
		}
	})
	// Blobs, which take long enough to be hit.
	var mu sync.Mutex
	blobs := map[string]int64{}
	all.Go(func() {
		for seed := uint64(1); !stopped(); seed++ {
			size := int64(8 << 20)
			d := random(seed, size)
			if err := y.Blobs().Put(ctx, d, source(seed, size), size); err != nil {
				t.Errorf("blob: %v", err)
				return
			}
			mu.Lock()
			blobs[d] = size
			mu.Unlock()
			rounds[2].Add(1)
		}
	})
	// Jobs, each of which is done.
	done := map[string]bool{}
	all.Go(func() {
		for i := 0; !stopped(); i++ {
			id := fmt.Sprintf("job-%d", i)
			if err := x.Jobs().Submit(ctx, id, []byte(id)); err != nil {
				t.Errorf("submit: %v", err)
				return
			}
			for !done[id] {
				d, err := y.Jobs().Next(ctx)
				if err == nil {
					err = d.Done(ctx)
				}
				if err != nil {
					t.Errorf("job: %v", err)
					return
				}
				if done[d.ID()] {
					t.Errorf("job %s came again", d.ID())
				}
				done[d.ID()] = true
			}
			rounds[3].Add(1)
		}
	})
	// Events arrive once, in order.
	published, followed := 0, 0
	all.Go(func() {
		for ; !stopped(); published++ {
			if err := x.Events().Publish("run", []byte(strconv.Itoa(published))); err != nil {
				t.Errorf("publish: %v", err)
				return
			}
			_ = pause(ctx, 0)
		}
		if err := x.Events().Publish("run", []byte("end")); err != nil {
			t.Errorf("publish: %v", err)
		}
	})
	var follower sync.WaitGroup
	follower.Go(func() {
		err := y.Events().Follow(ctx, "run", func(e []byte) bool {
			if string(e) == "end" {
				return false
			}
			if string(e) != strconv.Itoa(followed) {
				t.Errorf("event %s, want %d", e, followed)
				return false
			}
			followed++
			return true
		})
		if err != nil {
			t.Errorf("follow: %v", err)
		}
	})

	progress := func(what string) {
		var before [4]int64
		for i := range rounds {
			before[i] = rounds[i].Load()
		}
		for i := range rounds {
			for try := 0; rounds[i].Load() <= before[i]+1; try++ {
				if pause(ctx, min(try, 3)) != nil {
					t.Fatalf("%s: no progress of %d (0: records, 1: messages, 2: blobs, 3: jobs)", what, i)
				}
			}
		}
	}
	progress("at first")
	for i := range 2 {
		broker.kill()
		if i == 0 { // calls wait for as long as it takes
			short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			_, err := x.Bucket(cluster.RunsBucket).Get(short, "counter")
			cancel()
			wantError(t, err, cluster.ErrUnreachable)
			wantError(t, x.Send("c-heard", nil), cluster.ErrUnreachable)
		}
		broker.start(t)
		progress(fmt.Sprintf("after kill %d", i))
	}
	close(stop)
	all.Wait()
	follower.Wait()
	if followed != published {
		t.Errorf("%d events of %d", followed, published)
	}

	// What was confirmed is there after one more.
	broker.kill()
	broker.start(t)
	r, err := y.Bucket(cluster.RunsBucket).Get(ctx, "counter")
	if err != nil || string(r.Value) != strconv.FormatInt(rounds[0].Load(), 10) {
		t.Errorf("counter %q (%v), want %d", r.Value, err, rounds[0].Load())
	}
	for d := range blobs {
		if err := x.Blobs().Get(ctx, d, io.Discard); err != nil {
			t.Error(err)
		}
	}
	short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	if d, err := x.Jobs().Next(short); err == nil {
		t.Errorf("job %s is there, though all are done", d.ID())
	}
	t.Logf("%d updates, %d messages, %d blobs, %d jobs, %d events over 3 kills",
		rounds[0].Load(), heard.Load(), rounds[2].Load(), rounds[3].Load(), published)
}

func source(seed uint64, size int64) io.Reader {
	return io.LimitReader(rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}), size)
}

func random(seed uint64, size int64) string {
	h := sha256.New()
	_, _ = io.Copy(h, source(seed, size))
	return hex.EncodeToString(h.Sum(nil))
}

// Revisions grow over a kill, though no record is left from before.
func TestRevisionsOverKill(t *testing.T) {
	t.Parallel()
	broker := startChild(t)
	x := connect(t, Options{URLs: broker.url()})
	ctx := within(t, 3*time.Minute)
	k := x.Bucket(cluster.LeadBucket)
	var last uint64
	for range 3 {
		var err error
		if last, err = k.Put(ctx, "lead", []byte("a")); err != nil {
			t.Fatal(err)
		}
	}
	for try := 0; ; try++ {
		if _, err := k.Get(ctx, "lead"); errors.Is(err, cluster.ErrNoRecord) {
			break
		}
		if err := pause(ctx, min(try, 3)); err != nil {
			t.Fatal("the lead does not expire")
		}
	}
	broker.kill()
	broker.start(t)
	next, err := k.Create(ctx, "lead", []byte("b"))
	if err != nil || next <= last {
		t.Errorf("fence %d after %d, %v", next, last, err)
	}
}

// What waits for a broker that never came connects to one that comes late.
func TestBrokerComesLate(t *testing.T) {
	t.Parallel()
	first := startBroker(t, BrokerOptions{})
	port := first.Port()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	opts := Options{URLs: fmt.Sprintf("127.0.0.1:%d", port)}
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := Connect(short, opts)
	wantError(t, err, cluster.ErrUnreachable)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v does not say that time is over", err)
	}
	come := make(chan error, 1)
	ctx := within(t, 2*time.Minute)
	go func() {
		b, err := Connect(ctx, opts)
		if err == nil {
			err = b.Close()
		}
		come <- err
	}()
	startBroker(t, BrokerOptions{Port: port})
	if err := <-come; err != nil {
		t.Error(err)
	}
}

// A job stays with its taker though the broker is killed before it has written
// down who that is.
func TestJobOverKill(t *testing.T) {
	t.Parallel()
	broker := startChild(t)
	opts := Options{URLs: broker.url(), Lease: 3 * time.Second}
	x, y := connect(t, opts), connect(t, opts)
	ctx := within(t, 4*time.Minute)
	for i := range 3 {
		id := fmt.Sprintf("kept-%d", i)
		if err := x.Jobs().Submit(ctx, id, nil); err != nil {
			t.Fatal(err)
		}
		d, err := x.Jobs().Next(ctx)
		if err != nil || d.ID() != id {
			t.Fatal(d, err)
		}
		broker.kill()
		broker.start(t)
		if err := d.Working(ctx); err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		if other, err := y.Jobs().Next(short); err == nil {
			t.Errorf("job %s went to another", other.ID())
		}
		cancel()
		if err := d.Done(ctx); err != nil {
			t.Error(err)
		}
	}
	short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	if d, err := y.Jobs().Next(short); err == nil {
		t.Errorf("job %s came though it is done", d.ID())
	}
}
