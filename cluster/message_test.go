package cluster

import (
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/em"
)

func FuzzMessage(f *testing.F) {
	f.Add((&message{Kind: workMsg, Shards: runs{1, 3}, Payload: []byte("x")}).encode())
	f.Add([]byte{255, 255, 255, 255, 1})
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
		if err != nil || again.Kind != m.Kind || again.Term != m.Term || !slices.Equal(again.Payload, m.Payload) {
			t.Fatalf("written and read again: %+v, %v; want %+v", again, err, m)
		}
		if m.Shards.valid(maxShards) && len(m.Shards.all()) != m.Shards.count() {
			t.Fatalf("shards %v", m.Shards)
		}
		for _, kind := range []taskKind{flowTask, evalTask} {
			if results, err := decodeResults(kind, m.Payload); err == nil && len(results) > len(m.Payload)/shardBytes {
				t.Fatalf("%d shards in %d bytes", len(results), len(m.Payload))
			}
		}
	})
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
	m := message{Kind: enrolledMsg, Payload: encodeResults(flowTask, runs{0, maxShards}, results)}
	if n := len(m.encode()); n > leastPayload {
		t.Errorf("a worker that holds all shards says so in %d bytes, %d are possible", n, leastPayload)
	}
	m = message{Kind: reduceMsg, Held: map[string]runs{"worker-000": runsOf(odd)}}
	data := m.encode()
	if _, err := decodeMessage(data); err != nil || len(data) > leastPayload {
		t.Errorf("an order to move of %d bytes: %v", len(data), err)
	}
}

func TestRuns(t *testing.T) {
	for _, tc := range []struct {
		list []int
		want runs
	}{
		{nil, nil}, {[]int{3}, runs{3, 4}}, {[]int{5, 3, 4}, runs{3, 6}}, {[]int{9, 0, 1}, runs{0, 2, 9, 10}},
	} {
		got := runsOf(tc.list)
		if !slices.Equal(got, tc.want) || got.count() != len(tc.list) || !got.valid(10) {
			t.Errorf("runsOf(%v) = %v, want %v", tc.list, got, tc.want)
		}
		slices.Sort(tc.list)
		if !slices.Equal(got.all(), tc.list) {
			t.Errorf("%v lists %v", got, got.all())
		}
	}
	for _, bad := range []runs{{1}, {2, 2}, {3, 1}, {0, 2, 2, 3}, {0, 2, 1, 3}, {-1, 2}, {0, 11}} {
		if bad.valid(10) {
			t.Errorf("%v passes", bad)
		}
	}
}

// TestFence wants the highest fence to outlive the process, and lower ones to be
// refused.
func TestFence(t *testing.T) {
	dir := t.TempDir()
	f, err := openFence(dir)
	if err != nil {
		t.Fatal(err)
	}
	pass := func(f *fenceFile, fence uint64, want bool) {
		t.Helper()
		if ok, err := f.pass(fence); ok != want || err != nil {
			t.Errorf("fence %d: %t, %v; want %t", fence, ok, err, want)
		}
	}
	pass(f, 0, false)
	pass(f, 5, true)
	pass(f, 5, true)
	pass(f, 4, false)
	again, err := openFence(dir)
	if err != nil || again.value() != 5 {
		t.Fatalf("after a restart %v, %v", again, err)
	}
	pass(again, 4, false)
	pass(again, 6, true)
	if err := os.WriteFile(filepath.Join(dir, "fence"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openFence(dir); !errors.Is(err, ErrCluster) {
		t.Errorf("a damaged fence: %v", err)
	}
}

func TestAudit(t *testing.T) {
	good := AuditLine{Step: 1, Shards: 3, By: map[string]runs{"a": {0, 2}, "b": {2, 3}}}
	for _, tc := range []struct {
		name string
		edit func(*AuditLine)
		want string
	}{
		{"good", func(*AuditLine) {}, ""},
		{"missing", func(a *AuditLine) { a.By["b"] = nil }, "missing"},
		{"twice", func(a *AuditLine) { a.By["b"] = runs{1, 3} }, "counts for"},
		{"beyond", func(a *AuditLine) { a.By["b"] = runs{2, 4} }, "of 3"},
	} {
		a := good
		a.By = maps.Clone(good.By)
		tc.edit(&a)
		if err := a.Check(); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	path := filepath.Join(t.TempDir(), "audit")
	f, err := openAudit(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := f.append(good); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.rewind(2); err != nil {
		t.Fatal(err)
	}
	if err := f.append(good); err != nil {
		t.Fatal(err)
	}
	if err := f.close(); err != nil {
		t.Fatal(err)
	}
	r, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n, err := CheckAudit(r); n != 3 || err != nil {
		t.Errorf("%d steps, %v", n, err)
	}
	if f, err = openAudit(path); err != nil {
		t.Fatal(err)
	}
	defer f.close()
	if err := f.rewind(4); !errors.Is(err, ErrCluster) {
		t.Errorf("an audit that was cut: %v", err)
	}
	if _, err := CheckAudit(strings.NewReader(`{"step":2,"shards":0}`)); err == nil {
		t.Error("a step is missing, and nobody says so")
	}
}
