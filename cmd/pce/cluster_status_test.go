package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/cluster/simnet"
)

// sample is a cluster in which a worker has died, a run has the lead and others
// are over or wait.
func sample() *clusterStatus {
	run := func(id, state string, fence uint64) job.Record {
		return job.Record{RunStatus: cluster.RunStatus{
			Run: id, Kind: kindTrain, State: state, Epoch: 2, Epochs: 9, Step: 40, Term: cluster.Term{Fence: fence}, Transport: "tcp", SameBits: true,
			Shards: map[string]int{"worker-000": int(fence), "worker-009": 1},
			Unfit:  map[string]string{"worker-000": "the disk\nof " + id + " is full"},
		}}
	}
	return describeCluster(
		[]cluster.Member{{ID: "worker-001", Device: "cuda:0", Stopping: true}, {ID: "worker-000", Device: "cpu", Host: "a\x1b[2Jb", PID: 7}},
		&cluster.Holder{ID: "c-up", Run: "r-2"},
		[]job.Record{run("r-3", job.StateQueued, 0), run("r-2", job.StateRunning, 5), run("r-1", job.StateDone, 3)},
		[]cluster.DeadLetter{{Run: "r-1", Shard: 4, Reason: "NaN\nflows", Time: time.Unix(0, 0).UTC()}},
	)
}

// TestStatusShape holds the JSON to its contract.
func TestStatusShape(t *testing.T) {
	text, err := json.Marshal(sample())
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	if object["run"] != "r-2" || object["epoch"] != 2.0 || object["transport"] != "tcp" || object["state"] != job.StateRunning {
		t.Errorf("status %s", text)
	}
	workers := object["workers"].([]any)
	var got []string
	for _, w := range workers {
		w := w.(map[string]any)
		got = append(got, fmt.Sprintf("%v %v %v %v", w["id"], w["device"], w["shards"], w["alive"]))
	}
	if want := "[worker-000 cpu 5 true worker-001 cuda:0 0 true worker-009  1 false]"; fmt.Sprint(got) != want {
		t.Errorf("workers %v, want %v", got, want)
	}
	if jobs := object["jobs"].([]any); len(jobs) != 3 || jobs[0].(map[string]any)["run"] != "r-1" {
		t.Errorf("jobs %v", jobs)
	}
	if dead := object["dead_letters"].([]any); len(dead) != 1 {
		t.Errorf("dead letters %v", dead)
	}
	empty, err := json.Marshal(describeCluster(nil, nil, nil, nil))
	if err != nil || !strings.Contains(string(empty), `"workers":[],"jobs":[],"dead_letters":[]`) {
		t.Errorf("an empty cluster: %s, %v", empty, err)
	}
	// The latest run's shards stay when it is over.
	jobs := sample().Jobs
	if over := describeCluster([]cluster.Member{{ID: "worker-000"}}, nil, jobs[:1], nil); over.Run != "r-1" || over.Workers[0].Unfit != "" {
		t.Errorf("a run that is over has workers that take no part: %+v", over)
	}
	over := describeCluster(nil, nil, jobs, nil)
	if over.Run != "r-2" || len(over.Workers) != 2 {
		t.Errorf("without a lead: %+v", over)
	}
	table := sample().table()
	for _, want := range []string{"run r-2: running, epoch 2/9, step 40, term 5.0, by tcp", "worker-009", "gone", "leaving", "given up: shard 4 of run r-1", "NaN flows", "  takes no part: the disk of r-2 is full\n"} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
	rows := describeCluster(nil, nil, []job.Record{{RunStatus: cluster.RunStatus{
		Run: "r-4", Kind: "loglik", State: job.StateDone, Rows: 70, Epochs: 20, Term: cluster.Term{Fence: 1}, Transport: "tcp",
	}}}, nil).table()
	if !strings.Contains(rows, "run r-4: done, 70 rows, term 1.0, by tcp") || strings.Contains(rows, "/20") {
		t.Errorf("a job about rows:\n%s", rows)
	}
	if strings.ContainsRune(table, '\x1b') {
		t.Errorf("escapes in %q", table)
	}
	forged := describeCluster(nil, nil, []job.Record{{RunStatus: cluster.RunStatus{
		Run: "r-5\x1b[2J", State: "done\nrun r-6: done", Term: cluster.Term{Fence: 1}, Transport: "tcp\x1b[1m",
	}}}, nil).table()
	if strings.ContainsRune(forged, '\x1b') || !strings.HasPrefix(forged, "run r-5 [2J: done run r-6: done, 0 rows, term 1.0, by tcp [1m\n") {
		t.Errorf("what another client wrote is not one line: %q", forged)
	}
}

// TestStatusOfKinds says that workers are of several kinds once the run has begun with them, and not of one that waits for workers.
func TestStatusOfKinds(t *testing.T) {
	for term, want := range map[cluster.Term]bool{{}: false, {Fence: 5, Generation: 1}: true} {
		r := job.Record{RunStatus: cluster.RunStatus{Run: "r-1", State: job.StateRunning, Term: term}}
		table := describeCluster(nil, &cluster.Holder{Run: "r-1"}, []job.Record{r}, nil).table()
		if strings.Contains(table, "differ in kind") != want {
			t.Errorf("in term %v it says that the devices differ %v, want %v:\n%s", term, !want, want, table)
		}
	}
}

// TestStatusOfMany lists the newest jobs of the queue and the runs that pce train --cluster led last, however many there are of either.
func TestStatusOfMany(t *testing.T) {
	var jobs []job.Record
	for i := range 50 {
		jobs = append(jobs,
			job.Record{RunStatus: cluster.RunStatus{Run: fmt.Sprintf("2026-%02d", i), State: job.StateQueued}},
			job.Record{RunStatus: cluster.RunStatus{Run: fmt.Sprintf("%s%02d", job.LocalPrefix, 49-i), State: job.StateInterrupted, Term: cluster.Term{Fence: uint64(1 + i)}}})
	}
	table := describeCluster(nil, nil, jobs, nil).table()
	for id, want := range map[string]bool{"2026-49": true, "2026-30": true, "2026-29": false, "train-00": true, "train-19": true, "train-20": false, "and 60 older ones": true} {
		if strings.Contains(table, "\n"+id) != want {
			t.Errorf("%s is shown %v, want %v, in\n%s", id, !want, want, table)
		}
	}
}

// TestStatusOfManyLetters shows what was given up last, however much that is.
func TestStatusOfManyLetters(t *testing.T) {
	for _, n := range []int{shownJobs, shownJobs + 1, 4096} {
		var dead []cluster.DeadLetter
		for i := range n {
			dead = append(dead, cluster.DeadLetter{Run: fmt.Sprintf("r-%04d", i), Shard: -1, Reason: "it is bad"})
		}
		table := describeCluster(nil, nil, nil, dead).table()
		if lines := strings.Count(table, "given up: "); lines != shownJobs || !strings.Contains(table, fmt.Sprintf("r-%04d", n-1)) {
			t.Errorf("%d of %d letters:\n%.2000s", lines, n, table)
		}
		more := fmt.Sprintf("and %d given up before; --json has them all", n-shownJobs)
		if strings.Contains(table, more) != (n > shownJobs) {
			t.Errorf("of %d letters:\n%.2000s", n, table)
		}
	}
}

// TestWatchStatus draws twice and wants the first picture erased, with the rows that its lines take on a narrow terminal.
func TestWatchStatus(t *testing.T) {
	for columns, rows := range map[int]int{0: 3, 200: 3, 20: 5} {
		inBubble(t, func(t *testing.T, bus cluster.Bus) {
			ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
			defer cancel()
			var b bytes.Buffer
			if err := watchStatus(ctx, bus, &b, func() int { return columns }); err != nil {
				t.Error(err)
			}
			if strings.Count(b.String(), "no run yet") != 2 || !strings.Contains(b.String(), fmt.Sprintf("\r\x1b[%dA\x1b[J", rows)) {
				t.Errorf("on %d columns it drew %q, want %d rows erased", columns, &b, rows)
			}
		})
	}
}

// TestLogs follows runs that go on, that end, and whose end was not told.
func TestLogs(t *testing.T) {
	inBubble(t, func(t *testing.T, bus cluster.Bus) {
		say := func(run, text string) {
			if err := bus.Events().Publish(run, []byte(text)); err != nil {
				t.Error(err)
			}
		}
		for _, id := range []string{"r-1", "r-2"} {
			advance(t, bus, id, 1)
			say(id, `{"msg":"one"}`)
		}
		var b bytes.Buffer
		chatter, stop := context.WithCancel(t.Context())
		go func() { // the run continues all the time
			for chatter.Err() == nil {
				say("r-2", `{"msg":"more"}`)
				<-time.After(10 * time.Millisecond)
			}
		}()
		<-time.After(time.Second)
		for _, id := range []string{"r-1", "r-2"} {
			b.Reset()
			begin := time.Now()
			if err := printEvents(t.Context(), bus, id, &b); err != nil || !strings.HasPrefix(b.String(), `{"msg":"one"}`+"\n") || time.Since(begin) > time.Second {
				t.Errorf("so far: %q, %v, after %v", &b, err, time.Since(begin))
			}
		}
		stop()
		go func() {
			<-time.After(time.Hour)
			say("r-1", "tw\x1bo")
			say("r-1", `{"msg":"run ended","state":"failed","code":3}`)
			say("r-1", "after the end")
		}()
		b.Reset()
		end, err := (&follower{bus: bus, run: "r-1", w: &b, notes: io.Discard}).print(t.Context())
		if err != nil || end == nil || end.Code != 3 || strings.Count(b.String(), "\n") != 3 || !strings.Contains(b.String(), "tw o\n") {
			t.Errorf("to the end: %q, %v, %v", &b, end, err)
		}
		go func() {
			<-time.After(time.Hour)
			if err := job.PutRun(t.Context(), bus, &job.Record{RunStatus: cluster.RunStatus{Run: "r-2", State: job.StateDone}}); err != nil {
				t.Error(err)
			}
		}()
		if end, err := (&follower{bus: bus, run: "r-2", w: &b, notes: io.Discard}).print(t.Context()); err != nil || end != nil {
			t.Errorf("an end that was not told: %v, %v", end, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		advance(t, bus, "r-3", 1)
		if _, err := (&follower{bus: bus, run: "r-3", w: &b, notes: io.Discard}).print(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("interrupted: %v", err)
		}
	})
}

// absentBus is a bus whose broker may be away.
type absentBus struct {
	cluster.Bus
	away *atomic.Bool
}

type absentBucket struct{ cluster.Bucket }

func (b absentBus) Bucket(name string) cluster.Bucket {
	if b.away.Load() {
		return absentBucket{b.Bus.Bucket(name)}
	}
	return b.Bus.Bucket(name)
}

func (absentBucket) Get(context.Context, string) (cluster.Record, error) {
	return cluster.Record{}, fmt.Errorf("%w: no answer", cluster.ErrUnreachable)
}

// TestFollowAbsent wants who follows a run to be told when the broker goes away, once, and when it is there.
func TestFollowAbsent(t *testing.T) {
	inBubble(t, func(t *testing.T, bus cluster.Bus) {
		endRun(t, bus, "r-1", job.StateRunning)
		var notes bytes.Buffer
		var away atomic.Bool
		ended := make(chan error)
		go func() {
			_, err := (&follower{bus: absentBus{bus, &away}, run: "r-1", w: io.Discard, notes: &notes}).print(t.Context())
			ended <- err
		}()
		for _, now := range []bool{false, true, false} {
			away.Store(now)
			<-time.After(10 * time.Second)
		}
		endRun(t, bus, "r-1", job.StateDone)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if want := "note: the broker does not answer; waiting for it\nnote: the broker answers\n"; notes.String() != want {
			t.Errorf("notes are %q, want %q", notes.String(), want)
		}
	})
}

// TestStatusLead reads who leads beside another record of the bucket.
func TestStatusLead(t *testing.T) {
	bus := simnet.New(1, simnet.Faults{}).Host("c-up").Bus()
	put := func(key, value string) {
		t.Helper()
		if _, err := bus.Bucket(cluster.LeadBucket).Put(t.Context(), key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	put("uploads", `{"id":"removal-1"}`)
	if lead, err := readLead(t.Context(), bus); lead != nil || err != nil {
		t.Errorf("without a coordinator that leads, the status has %v, %v", lead, err)
	}
	put(cluster.LeadKey, `{"id":"c-up","run":"r-1"}`)
	if lead, err := readLead(t.Context(), bus); err != nil || lead == nil || lead.Run != "r-1" {
		t.Errorf("the lead is %v, %v", lead, err)
	}
	put(cluster.LeadKey, `"c-up"`)
	if _, err := readLead(t.Context(), bus); !errors.Is(err, cluster.ErrCluster) {
		t.Errorf("a record that cannot be read: %v", err)
	}
}

// TestStatusUnreadable wants the status of a cluster in which a record of a run and one of a worker cannot be read: it has all others,
// and names these.
func TestStatusUnreadable(t *testing.T) {
	inBubble(t, func(t *testing.T, bus cluster.Bus) {
		queued(t, bus, "r-1")
		for key, bucket := range map[string]string{"r-2": cluster.RunsBucket, "w-2": cluster.MembersBucket} {
			if _, err := bus.Bucket(bucket).Put(t.Context(), key, []byte(`["another version"]`)); err != nil {
				t.Fatal(err)
			}
		}
		s, err := readStatus(t.Context(), bus)
		if err != nil {
			t.Fatal(err)
		}
		table := s.table()
		for _, want := range []string{`r-1 .* queued`, `r-2 .* unreadable .* its record cannot be read: json`, `w-2 .* takes no part: its record cannot be read: json`} {
			if !regexp.MustCompile(want).MatchString(table) {
				t.Errorf("no %q in\n%s", want, table)
			}
		}
	})
}
