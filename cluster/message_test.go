package cluster

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/kernels/tensor"
)

// examples are a message of every kind; of work, one of every task.
func examples() []*message {
	v, term := Version{Lineage: 7, Moves: 3}, Term{Fence: 5, Generation: 2}
	members := []memberRef{{ID: "w0", Inbox: "w0-a"}, {ID: "w1", Inbox: "w1-a", Endpoint: Endpoint{Transport: "tcp", Address: "h:1", Fingerprint: "f", Local: "l"}}}
	flows := task{Kind: flowTask, Step: Step{dataset.Schedule{Rows: 100, BatchRows: 50}, dataset.Cursor{Epoch: 1, Step: 1}}, Rows: 50, ShardRows: 10}
	done := runs{0, 1, 3, 5}
	results := map[int]shardResult{0: {Rows: 10}, 3: {Rows: 10, Recomputed: 4}, 4: {Rows: 10, Impossible: 1}}
	all := []*message{
		{Body: &prepareOrder{Spec: Spec{Run: "r", Model: "0a", Path: "avx2", Body: []byte(`{"x":1}`)}}},
		{Body: &enrollOrder{Version: v, MovedIn: term, Leader: memberRef{ID: "c", Inbox: "c-a"}, Members: members, Reset: true}},
		{Body: &syncOrder{Version: v, Source: "w0"}},
		{Body: &workOrder{Version: v, MovedIn: term, Task: flows, Shards: done}},
		{Body: &workOrder{Version: v, Task: task{Kind: evalTask, Source: "valid", Rows: 50, ShardRows: 10}, Shards: runs{2, 5}}},
		{Body: &workOrder{Task: task{Kind: queryTask}, Shards: runs{8, 9}}, Payload: []byte("question")},
		{Body: &reduceOrder{Version: v, Task: flows, Rule: &tensor.Rule{Step: 0.5}, Held: map[string]runs{"w0": {0, 2}, "w1": {2, 5}}}},
		{Body: &commitOrder{Version: v, MovedIn: term}},
		{Body: &releaseOrder{Over: true}},
		{Body: &beatReport{State: unfit, Spec: 1 << 63, Version: v, Queue: 3, Bytes: 9, Err: "no rows", Final: true}},
		{Body: &enrolledReport{Version: v, Info: SessionInfo{Device: "cpu", Path: "avx2", Precision: "fp32"}}, Payload: encodeResults(flowTask, done, results)},
		{Body: &doneReport{Shards: done, Nanos: 12}, Payload: encodeResults(flowTask, done, results)},
		{Body: &failedReport{Shard: 4, Err: "no rows"}},
		{Body: &failedReport{Shard: 4, Err: "no rows", Final: true}},
		{Body: &movedReport{Version: v, Sums: map[string]uint32{"w0": 1, "w1": 1 << 31}}},
		{Body: &troubleReport{Err: "negative flows", Blame: "w1"}},
	}
	for _, m := range all {
		m.From, m.Run, m.Term, m.Round = "x-1", "r", term, 11
	}
	return all
}

var allKinds = []messageKind{prepareMsg, enrollMsg, syncMsg, workMsg, reduceMsg, commitMsg, releaseMsg, beatMsg, enrolledMsg, doneMsg, failedMsg, movedMsg, troubleMsg}

func FuzzMessage(f *testing.F) {
	for _, m := range examples() {
		f.Add(m.encode())
	}
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255, 1})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decodeMessage(data)
		if err != nil {
			if !errors.Is(err, ErrCluster) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error %q", err)
			}
			return
		}
		again, err := decodeMessage(m.encode())
		if err != nil || again.From != m.From || again.Term != m.Term || again.Round != m.Round || !slices.Equal(again.Payload, m.Payload) {
			t.Fatalf("written and read again: %+v, %v; want %+v", again, err, m)
		}
		if string(again.encode()) != string(m.encode()) {
			t.Fatalf("written twice: %+v, want %+v", again.Body, m.Body)
		}
		var shards runs
		switch b := m.Body.(type) {
		case *workOrder:
			shards = b.Shards
		case *doneReport:
			shards = b.Shards
		}
		if shards.count() > maxShards || len(shards.all()) != shards.count() {
			t.Fatalf("shards %v", shards)
		}
		for _, kind := range []taskKind{flowTask, evalTask} {
			if results, err := decodeResults(kind, m.Payload); err == nil && len(results) > len(m.Payload)/shardBytes {
				t.Fatalf("%d shards in %d bytes", len(results), len(m.Payload))
			}
		}
	})
}

// TestMessages writes a message of every kind and reads it again, and refuses it
// when it is cut.
func TestMessages(t *testing.T) {
	kinds := map[messageKind]bool{}
	for _, m := range examples() {
		kinds[m.Body.kind()] = true
		data := m.encode()
		got, err := decodeMessage(data)
		if err != nil {
			t.Errorf("%s: %v", m.Body.kind(), err)
			continue
		}
		got.Payload = append([]byte(nil), got.Payload...)
		if !reflect.DeepEqual(got, m) {
			t.Errorf("%s: read %+v, want %+v", m.Body.kind(), got, m)
		}
		for n := range len(data) - len(m.Payload) {
			if _, err := decodeMessage(data[:n]); !errors.Is(err, ErrCluster) {
				t.Errorf("%s: the first %d of %d bytes: %v", m.Body.kind(), n, len(data), err)
			}
		}
	}
	for _, k := range allKinds {
		if !kinds[k] || newBody(k) == nil || newBody(k).kind() != k {
			t.Errorf("kind %s has no example, or no body of its own", k)
		}
	}
	if newBody("") != nil || newBody("Beat") != nil {
		t.Error("a kind that does not exist has a body")
	}
}

// raw writes a message of any text.
func raw(envelope, body string) []byte {
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(envelope)))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(body)))
	return append(append(out, envelope...), body...)
}

// TestForeignBodies refuses a body under the name of every other kind, and a body
// that is missing.
func TestForeignBodies(t *testing.T) {
	refused := func(what string, data []byte) {
		t.Helper()
		if m, err := decodeMessage(data); !errors.Is(err, ErrCluster) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %+v, %v; want one line that matches ErrCluster", what, m, err)
		}
	}
	for _, m := range examples() {
		text, err := json.Marshal(m.Body)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range allKinds {
			if own := m.Body.kind(); kind != own {
				refused(fmt.Sprintf("body of %s in %s", own, kind), raw(fmt.Sprintf(`{"kind":%q,"from":"x-1"}`, kind), string(text)))
			}
		}
	}
	for _, kind := range allKinds {
		head := fmt.Sprintf(`{"kind":%q,"from":"x-1"}`, kind)
		for _, body := range []string{"", "null", "[]", "7", `"x"`, "{", `{"x":1}`, "{}{}", "{} 7"} {
			refused(fmt.Sprintf("%s with the body %q", kind, body), raw(head, body))
		}
		if kind != releaseMsg { // which has no fields
			refused(string(kind)+" with an empty body", raw(head, "{}"))
		}
	}
	for _, head := range []string{
		"", "null", "{}", `{"kind":"release"}`, `{"from":"x"}`, `{"kind":"mine","from":"x"}`, `{"kind":"release","from":"x","state":"idle"}`,
		`{"kind":"release","from":7}`, `{"kind":"release","from":"x","term":{"fence":-1}}`, `{"kind":"release","from":"x","term":{"generation":4294967296}}`,
	} {
		refused("envelope "+head, raw(head, "{}"))
	}
	if _, err := decodeMessage(raw(`{"kind":"release","from":"x"}`, "{}")); err != nil {
		t.Errorf("the shortest message: %v", err)
	}
	// Version 2 had one length, and one object with the fields of all kinds.
	old := `{"kind":"release","from":"c-1","term":{"fence":5,"generation":1},"version":{"lineage":0,"moves":0},"leader":{"id":"","inbox":""}}`
	refused("a message of version 2", append(binary.LittleEndian.AppendUint32(nil, uint32(len(old))), old...))
}

// at sets a field of the example whose body is a B to the last value that passes,
// and to the first that does not.
func at[B any](t *testing.T, what string, pass, refuse func(b *B, m *message)) {
	t.Helper()
	for _, side := range []struct {
		edit func(b *B, m *message)
		want bool
	}{{func(*B, *message) {}, true}, {pass, true}, {refuse, false}} {
		for _, m := range examples() {
			b, ok := any(m.Body).(*B)
			if !ok {
				continue
			}
			side.edit(b, m)
			got, err := decodeMessage(m.encode())
			if (err == nil) != side.want || err != nil && (!errors.Is(err, ErrCluster) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 400) {
				t.Errorf("%s, %s: %+v, %v; want it to pass: %t", m.Body.kind(), what, got, err, side.want)
			}
			break
		}
	}
}

// counted is a map of n entries.
func counted[K comparable, V any](n int, entry func(i int) (K, V)) map[K]V {
	m := map[K]V{}
	for i := range n {
		k, v := entry(i)
		m[k] = v
	}
	return m
}

// TestBounds plays both sides of every bound of every field.
func TestBounds(t *testing.T) {
	longest, longer := strings.Repeat("n", maxName), strings.Repeat("n", maxName+1)
	reason, tooMuch := strings.Repeat("é", maxReason/2), strings.Repeat("é", maxReason/2)+"e"
	refs := func(n int) (s []memberRef) {
		for i := range n {
			s = append(s, memberRef{ID: fmt.Sprint("w", i), Inbox: fmt.Sprint("i", i)})
		}
		return s
	}
	held := func(n int) map[string]runs {
		return counted(n, func(i int) (string, runs) { return fmt.Sprint("w", i), runs{0, 1} })
	}
	sums := func(n int) map[string]uint32 {
		return counted(n, func(i int) (string, uint32) { return fmt.Sprint("w", i), 0 })
	}
	type (
		prepare  = *prepareOrder
		enroll   = *enrollOrder
		work     = *workOrder
		reduce   = *reduceOrder
		beat     = *beatReport
		enrolled = *enrolledReport
		done     = *doneReport
		failed   = *failedReport
		moved    = *movedReport
		trouble  = *troubleReport
		msg      = *message
	)

	at(t, "sender", func(_ *releaseOrder, m msg) { m.From = longest }, func(_ *releaseOrder, m msg) { m.From = longer })
	at(t, "no sender", func(_ *releaseOrder, m msg) { m.From = "x" }, func(_ *releaseOrder, m msg) { m.From = "" })
	at(t, "run", func(_ *beatReport, m msg) { m.Run = longest }, func(_ *beatReport, m msg) { m.Run = longer })
	at(t, "round", func(_ *beatReport, m msg) { m.Round = 0 }, func(_ *beatReport, m msg) { m.Round = -1 })

	at(t, "run", func(b prepare, _ msg) { b.Spec.Run = longest }, func(b prepare, _ msg) { b.Spec.Run = longer })
	at(t, "no run", func(b prepare, _ msg) { b.Spec.Run = "r" }, func(b prepare, _ msg) { b.Spec.Run = "" })

	at(t, "members", func(b enroll, _ msg) { b.Members = refs(maxMembers) }, func(b enroll, _ msg) { b.Members = refs(maxMembers + 1) })
	at(t, "no members", func(b enroll, _ msg) { b.Members = refs(1) }, func(b enroll, _ msg) { b.Members = nil })
	at(t, "equal IDs", func(b enroll, _ msg) { b.Members[1].ID = "w2" }, func(b enroll, _ msg) { b.Members[1].ID = "w0" })
	at(t, "equal inboxes", func(b enroll, _ msg) { b.Members[1].Inbox = "w2" }, func(b enroll, _ msg) { b.Members[1].Inbox = "w0-a" })
	at(t, "no version", func(b enroll, _ msg) { b.Version = Version{} }, func(b enroll, _ msg) { b.Version = Version{Moves: 1} })
	at(t, "leader's ID", func(b enroll, _ msg) { b.Leader.ID = longest }, func(b enroll, _ msg) { b.Leader.ID = longer })
	at(t, "no leader", func(b enroll, _ msg) { b.Leader.Inbox = "c" }, func(b enroll, _ msg) { b.Leader.Inbox = "" })
	for i, field := range []func(s *memberRef) *string{
		func(s *memberRef) *string { return &s.ID }, func(s *memberRef) *string { return &s.Inbox },
	} {
		what := fmt.Sprint("name ", i, " of a member")
		at(t, what, func(b enroll, _ msg) { *field(&b.Members[1]) = longest }, func(b enroll, _ msg) { *field(&b.Members[1]) = longer })
		at(t, what, func(b enroll, _ msg) { *field(&b.Members[1]) = "x" }, func(b enroll, _ msg) { *field(&b.Members[1]) = "" })
	}
	for i, field := range []func(e *Endpoint) *string{
		func(e *Endpoint) *string { return &e.Transport }, func(e *Endpoint) *string { return &e.Address },
		func(e *Endpoint) *string { return &e.Fingerprint }, func(e *Endpoint) *string { return &e.Local },
	} {
		at(t, fmt.Sprint("part ", i, " of an endpoint"), func(b enroll, _ msg) { *field(&b.Members[1].Endpoint) = strings.Repeat("a", maxAddress) },
			func(b enroll, _ msg) { *field(&b.Members[1].Endpoint) = strings.Repeat("a", maxAddress+1) })
	}

	at(t, "source", func(b *syncOrder, _ msg) { b.Source = longest }, func(b *syncOrder, _ msg) { b.Source = longer })
	at(t, "no source", func(b *syncOrder, _ msg) { b.Source = "w" }, func(b *syncOrder, _ msg) { b.Source = "" })
	at(t, "version", func(b *syncOrder, _ msg) { b.Version = Version{Lineage: 1} }, func(b *syncOrder, _ msg) { b.Version = Version{} })
	at(t, "moves", func(b *syncOrder, _ msg) { b.Version.Moves = math.MaxInt64 - 1 }, func(b *syncOrder, _ msg) { b.Version.Moves = math.MaxInt64 })

	at(t, "moves", func(b work, _ msg) { b.Version.Moves = 0 }, func(b work, _ msg) { b.Version.Moves = -1 })
	at(t, "kind of task", func(b work, _ msg) { b.Task.Kind = flowTask }, func(b work, _ msg) { b.Task.Kind = "flow" })
	at(t, "rows of a task", func(b work, _ msg) { b.Task.Rows, b.Task.ShardRows, b.Shards = 1, 1, runs{0, 1} },
		func(b work, _ msg) { b.Task.Rows, b.Task.ShardRows, b.Shards = 0, 1, runs{0, 1} })
	at(t, "most rows of a task", func(b work, _ msg) { b.Task.Rows, b.Task.ShardRows, b.Shards = maxRows, maxRows, runs{0, 1} },
		func(b work, _ msg) { b.Task.Rows, b.Task.ShardRows, b.Shards = maxRows+1, maxRows, runs{0, 1} })
	at(t, "rows of a shard", func(b work, _ msg) { b.Task.ShardRows, b.Shards = maxRows, runs{0, 1} },
		func(b work, _ msg) { b.Task.ShardRows, b.Shards = maxRows+1, runs{0, 1} })
	at(t, "no rows of a shard", func(b work, _ msg) { b.Task.ShardRows = 1 }, func(b work, _ msg) { b.Task.ShardRows = 0 })
	at(t, "shards of a step", func(b work, _ msg) { b.Task.Rows, b.Task.ShardRows = 3*maxShards, 3 },
		func(b work, _ msg) { b.Task.Rows, b.Task.ShardRows = 3*maxShards+1, 3 })
	evaluation := task{Kind: evalTask, Source: "v", Rows: 3 * maxShard, ShardRows: 3}
	at(t, "shards of an evaluation", func(b work, _ msg) { b.Task = evaluation }, func(b work, _ msg) { b.Task = evaluation; b.Task.Rows++ })
	at(t, "evaluated at a time", func(b work, _ msg) { b.Task, b.Shards = evaluation, runs{7, 7 + maxShards} },
		func(b work, _ msg) { b.Task, b.Shards = evaluation, runs{7, 8 + maxShards} })
	at(t, "source", func(b work, _ msg) { b.Task = evaluation; b.Task.Source = longest }, func(b work, _ msg) { b.Task = evaluation; b.Task.Source = longer })
	at(t, "no source", func(b work, _ msg) { b.Task = evaluation }, func(b work, _ msg) { b.Task = evaluation; b.Task.Source = "" })
	at(t, "shards", func(b work, _ msg) { b.Shards = runs{4, 5} }, func(b work, _ msg) { b.Shards = runs{4, 6} })
	at(t, "no shards", func(b work, _ msg) { b.Shards = runs{0, 1} }, func(b work, _ msg) { b.Shards = nil })
	at(t, "negative shards", func(b work, _ msg) { b.Shards = runs{0, 2} }, func(b work, _ msg) { b.Shards = runs{-1, 2} })
	at(t, "half a range", func(b work, _ msg) { b.Shards = runs{0, 2} }, func(b work, _ msg) { b.Shards = runs{0, 2, 3} })
	query := task{Kind: queryTask}
	at(t, "shards of a query", func(b work, _ msg) { b.Task, b.Shards = query, runs{4, 5} }, func(b work, _ msg) { b.Task, b.Shards = query, runs{4, 6} })
	at(t, "last query", func(b work, _ msg) { b.Task, b.Shards = query, runs{maxShard - 1, maxShard} },
		func(b work, _ msg) { b.Task, b.Shards = query, runs{maxShard, maxShard + 1} })
	at(t, "rows of a query", func(b work, _ msg) { b.Task, b.Shards = query, runs{4, 5} },
		func(b work, _ msg) { b.Task, b.Shards = query, runs{4, 5}; b.Task.Rows = 1 })
	at(t, "shard rows of a query", func(b work, _ msg) { b.Task, b.Shards = query, runs{4, 5} },
		func(b work, _ msg) { b.Task, b.Shards = query, runs{4, 5}; b.Task.ShardRows = 1 })
	at(t, "request", func(b work, m msg) { b.Task, b.Shards, m.Payload = query, runs{4, 5}, []byte("?") }, func(_ work, m msg) { m.Payload = []byte("?") })

	at(t, "members", func(b reduce, _ msg) { b.Held = held(maxMembers) }, func(b reduce, _ msg) { b.Held = held(maxMembers + 1) })
	at(t, "no members", func(b reduce, _ msg) { b.Held = held(1) }, func(b reduce, _ msg) { b.Held = nil })
	at(t, "shards", func(b reduce, _ msg) { b.Held["w1"] = runs{4, 5} }, func(b reduce, _ msg) { b.Held["w1"] = runs{4, 6} })
	at(t, "no shards", func(b reduce, _ msg) { b.Held["w1"] = runs{4, 5} }, func(b reduce, _ msg) { b.Held["w1"] = nil })
	at(t, "name", func(b reduce, _ msg) { b.Held[longest] = runs{4, 5} }, func(b reduce, _ msg) { b.Held[longer] = runs{4, 5} })
	at(t, "rule", func(b reduce, _ msg) { b.Rule = &tensor.Rule{} }, func(b reduce, _ msg) { b.Rule = nil })
	at(t, "task", func(b reduce, _ msg) {}, func(b reduce, _ msg) { b.Task.Kind, b.Task.Source = evalTask, "v" })
	at(t, "task's rows", func(b reduce, _ msg) {}, func(b reduce, _ msg) { b.Task.Rows = -1 })
	at(t, "version", func(b reduce, _ msg) { b.Version = Version{Lineage: 1} }, func(b reduce, _ msg) { b.Version = Version{} })
	at(t, "moves", func(b reduce, _ msg) { b.Version.Moves = 0 }, func(b reduce, _ msg) { b.Version.Moves = -1 })

	at(t, "moves", func(b *commitOrder, _ msg) { b.Version.Moves = 1 }, func(b *commitOrder, _ msg) { b.Version.Moves = 0 })
	at(t, "lineage", func(b *commitOrder, _ msg) { b.Version.Lineage = 1 }, func(b *commitOrder, _ msg) { b.Version.Lineage = 0 })

	at(t, "state", func(b beat, _ msg) { b.State = leaving }, func(b beat, _ msg) { b.State = "lost" })
	at(t, "queue", func(b beat, _ msg) { b.Queue = maxShards }, func(b beat, _ msg) { b.Queue = maxShards + 1 })
	at(t, "negative queue", func(b beat, _ msg) { b.Queue = 0 }, func(b beat, _ msg) { b.Queue = -1 })
	at(t, "bytes", func(b beat, _ msg) { b.Bytes = 0 }, func(b beat, _ msg) { b.Bytes = -1 })
	at(t, "reason", func(b beat, _ msg) { b.Err = reason }, func(b beat, _ msg) { b.Err = tooMuch })
	at(t, "moves", func(b beat, _ msg) { b.Version.Moves = 0 }, func(b beat, _ msg) { b.Version.Moves = -1 })

	results := func(n int) []byte { return make([]byte, n) }
	at(t, "moves", func(b enrolled, _ msg) { b.Version.Moves = 0 }, func(b enrolled, _ msg) { b.Version.Moves = -1 })
	at(t, "results", func(_ enrolled, m msg) { m.Payload = results(maxShards * shardBytes) }, func(_ enrolled, m msg) { m.Payload = results((maxShards + 1) * shardBytes) })
	at(t, "half a result", func(_ enrolled, m msg) { m.Payload = results(shardBytes) }, func(_ enrolled, m msg) { m.Payload = results(shardBytes + 1) })
	for i, field := range []func(s *SessionInfo) *string{
		func(s *SessionInfo) *string { return &s.Device }, func(s *SessionInfo) *string { return &s.Path }, func(s *SessionInfo) *string { return &s.Precision },
	} {
		at(t, fmt.Sprint("info ", i), func(b enrolled, _ msg) { *field(&b.Info) = longest }, func(b enrolled, _ msg) { *field(&b.Info) = longer })
	}

	at(t, "no device", func(b enrolled, _ msg) { b.Info.Device = "x" }, func(b enrolled, _ msg) { b.Info.Device = "" })

	at(t, "shards", func(b done, _ msg) { b.Shards = runs{0, maxShards} }, func(b done, _ msg) { b.Shards = runs{0, maxShards + 1} })
	at(t, "last shard", func(b done, _ msg) { b.Shards = runs{maxShard - 1, maxShard} }, func(b done, _ msg) { b.Shards = runs{maxShard, maxShard + 1} })
	at(t, "no shards", func(b done, _ msg) { b.Shards = runs{0, 1} }, func(b done, _ msg) { b.Shards = runs{} })
	at(t, "time", func(b done, _ msg) { b.Nanos = 0 }, func(b done, _ msg) { b.Nanos = -1 })

	at(t, "shard", func(b failed, _ msg) { b.Shard = maxShard - 1 }, func(b failed, _ msg) { b.Shard = maxShard })
	at(t, "negative shard", func(b failed, _ msg) { b.Shard = 0 }, func(b failed, _ msg) { b.Shard = -1 })
	at(t, "reason", func(b failed, _ msg) { b.Err = reason }, func(b failed, _ msg) { b.Err = tooMuch })
	at(t, "no reason", func(b failed, _ msg) { b.Err = "?" }, func(b failed, _ msg) { b.Err = "" })

	at(t, "moves", func(b moved, _ msg) { b.Version.Moves = 1 }, func(b moved, _ msg) { b.Version.Moves = 0 })
	at(t, "parts", func(b moved, _ msg) { b.Sums = sums(maxMembers) }, func(b moved, _ msg) { b.Sums = sums(maxMembers + 1) })
	at(t, "no parts", func(b moved, _ msg) { b.Sums = sums(1) }, func(b moved, _ msg) { b.Sums = nil })
	at(t, "name", func(b moved, _ msg) { b.Sums[longest] = 1 }, func(b moved, _ msg) { b.Sums[longer] = 1 })
	at(t, "no name", func(b moved, _ msg) { b.Sums["x"] = 1 }, func(b moved, _ msg) { b.Sums[""] = 1 })

	at(t, "reason", func(b trouble, _ msg) { b.Err = reason }, func(b trouble, _ msg) { b.Err = tooMuch })
	at(t, "no reason", func(b trouble, _ msg) { b.Err = "?" }, func(b trouble, _ msg) { b.Err = "" })
	at(t, "blame", func(b trouble, _ msg) { b.Blame = longest }, func(b trouble, _ msg) { b.Blame = longer })

	// Only queries, their answers and results are a payload.
	for _, m := range examples() {
		data, takes := append(m.encode(), make([]byte, shardBytes)...), m.Payload != nil
		if _, err := decodeMessage(data); (err == nil) != takes {
			t.Errorf("%s with more bytes behind it: %v; want it to pass: %t", m.Body.kind(), err, takes)
		}
	}
}

// TestHeaderBounds plays both sides of the bound of each part of the JSON.
func TestHeaderBounds(t *testing.T) {
	const head, body = `{"kind":"release","from":"x"}`, "{}"
	wide := func(text string, n int) string { return text[:1] + strings.Repeat(" ", n-len(text)) + text[1:] }
	for _, tc := range []struct {
		envelope, body string
		want           bool
	}{
		{wide(head, maxHeader), body, true}, {wide(head, maxHeader+1), body, false},
		{head, wide(body, maxHeader), true}, {head, wide(body, maxHeader+1), false},
	} {
		if _, err := decodeMessage(raw(tc.envelope, tc.body)); (err == nil) != tc.want {
			t.Errorf("envelope of %d and body of %d bytes: %v; want it to pass: %t", len(tc.envelope), len(tc.body), err, tc.want)
		}
	}
	for _, lengths := range [][2]uint32{{1 << 31, 1 << 31}, {math.MaxUint32, 1}, {29, 3}, {30, 2}} {
		data := binary.LittleEndian.AppendUint32(nil, lengths[0])
		data = append(binary.LittleEndian.AppendUint32(data, lengths[1]), head+body...)
		if _, err := decodeMessage(data); !errors.Is(err, ErrCluster) {
			t.Errorf("lengths %d: %v", lengths, err)
		}
	}
}

// TestReasons wants the text of every error to pass as that of a message.
func TestReasons(t *testing.T) {
	for _, text := range []string{
		"", " \n\t", "one\ntwo", strings.Repeat("x", maxReason), strings.Repeat("x", maxReason+1), strings.Repeat("é", maxReason),
		"x" + strings.Repeat("é", maxReason), strings.Repeat("\xff", 2*maxReason), strings.Repeat("x", maxReason-1) + "é",
	} {
		m := message{From: "w", Body: &failedReport{Err: reasonOf(errors.New(text))}}
		got, err := decodeMessage(m.encode())
		if err != nil {
			t.Errorf("%.20q: %v", text, err)
			continue
		}
		if b := got.Body.(*failedReport); strings.ContainsAny(b.Err, "\n\ufffd") || b.Err != m.Body.(*failedReport).Err {
			t.Errorf("%.20q became %q", text, b.Err)
		}
	}
}

// TestResults writes results and reads them, the infinite and the undefined ones too.
func TestResults(t *testing.T) {
	for _, kind := range []taskKind{flowTask, evalTask} {
		want := map[int]shardResult{}
		var list []int
		for i, ll := range []float64{0, -1.5, math.Inf(-1), math.NaN()} {
			want[7*i] = stepOf(em.StepResult{LogLikelihood: ll, Rows: i, Impossible: 2 * i, Recomputed: 1 << 40})
			if kind == evalTask {
				e := em.Evaluation{StepResult: em.StepResult{LogLikelihood: ll, Rows: i}, Lowest: em.RowLL{Row: i, LL: ll}, Highest: em.RowLL{Row: 1 << 30, LL: -ll}}
				if want[7*i] = evaluationOf(e); i < 3 && want[7*i].evaluation() != e {
					t.Errorf("%+v became %+v", e, want[7*i].evaluation())
				}
			}
			list = append(list, 7*i)
		}
		data := encodeResults(kind, runsOf(list), want)
		got, err := decodeResults(kind, data)
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: read %v, %v; want %v", kind, got, err, want)
		}
		if _, err := decodeResults(kind, data[:len(data)-1]); err == nil {
			t.Errorf("%s: half a result was read", kind)
		}
		if _, err := decodeResults(kind, append(data, data[:resultBytes(kind)]...)); !errors.Is(err, ErrCluster) {
			t.Errorf("%s: a result that comes twice: %v", kind, err)
		}
	}
}

// TestLargestMessages wants all that a full step needs to fit.
func TestLargestMessages(t *testing.T) {
	results := map[int]shardResult{}
	var odd []int
	for s := range maxShards {
		results[s] = shardResult{}
		if s%2 == 1 {
			odd = append(odd, s)
		}
	}
	v := Version{Lineage: math.MaxUint64, Moves: math.MaxInt64 - 1}
	members := make([]memberRef, maxMembers)
	for i := range members {
		id := fmt.Sprintf("worker-%057d", i)
		members[i] = memberRef{ID: id, Inbox: id + "-abcdefghij", Endpoint: Endpoint{Transport: "tcp", Address: "[2001:db8::ffff]:65535", Fingerprint: strings.Repeat("f", 64), Local: strings.Repeat("l", 108)}}
	}
	for what, m := range map[string]*message{
		"what a worker holds": {Body: &enrolledReport{Version: v, Info: SessionInfo{Device: "cpu"}}, Payload: encodeResults(flowTask, runs{0, maxShards}, results)},
		"an order to move": {Body: &reduceOrder{
			Version: v, Task: task{Kind: flowTask, Rows: maxShards, ShardRows: 1}, Rule: &tensor.Rule{}, Held: map[string]runs{"worker-000": runsOf(odd)},
		}},
		"an order to compute": {Body: &workOrder{Version: v, Task: task{Kind: flowTask, Rows: maxShards, ShardRows: 1}, Shards: runsOf(odd)}},
		"the members":         {Body: &enrollOrder{Version: v, Leader: members[0], Members: members}},
	} {
		m.From = strings.Repeat("n", maxName)
		data := m.encode()
		if _, err := decodeMessage(data); err != nil || len(data) > leastPayload {
			t.Errorf("%s: %d bytes, %d are possible: %v", what, len(data), leastPayload, err)
		}
	}
}
