package query

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/cluster/simnet"
	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/run"
)

// stump is a forest of one tree of two leaves over two columns.
func stump(input forest.Precision) *forest.Forest {
	return &forest.Forest{
		Features: 2, Outputs: 1, Base: []float64{0}, Input: input, Classes: 2, Labels: []string{"dry", "wet"}, Cut: 1.5, Output: forest.Float64, Sum: forest.Float64,
		Trees: []forest.Tree{{
			Weight: 1,
			Nodes:  []forest.Node{{Test: forest.Less, Feature: 1, Yes: 1, No: 2, Threshold: 0.5}, {First: 0, Last: 1}, {First: 1, Last: 2, ID: 1}},
			Values: []forest.Value{{Value: 1}, {Value: 2}},
		}},
	}
}

// subjectOf is a job about rows of a CSV file.
func subjectOf(t *testing.T, f *forest.Forest, what forest.What, text string) *forestSubject {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return &forestSubject{f, &Job{Data: []string{path, path}, Result: what, Format: "csv"}}
}

// TestNumberBlocks asks about each row once, in requests of at most so many bytes, from any row
// on, in both precisions; the answers to all of them are those of the forest.
func TestNumberBlocks(t *testing.T) {
	for _, input := range []forest.Precision{forest.Float32, forest.Float64} {
		f := stump(input)
		m, err := pce.NewForest(f, pce.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		s := subjectOf(t, f, forest.Margin, "1,0.1\n2,0.7\n3,?\n4,0.5\n5,0.4999999999\n6,0.49999998509883880615234374999\n")
		// The last cell rounds to less than the threshold once, and to the threshold in two steps.
		want := []float64{1, 2, 2, 2, 1, 1}
		if input == forest.Float32 {
			want[4] = 2 // the cell rounds to the threshold
		}
		want = append(want, want...)
		for _, rows := range []int{1, 2, 3, 100} {
			most := max(8, rows*2*cellBytes(f)) // an answer takes 8
			for skip := range int64(13) {
				q, err := s.Questions(t.Context(), most)
				if err != nil {
					t.Fatal(err)
				}
				if err := q.Skip(t.Context(), skip); err != nil {
					t.Fatal(err)
				}
				a := &predictAnswerer{model: m, what: forest.Margin}
				at := int(skip)
				for {
					request, n, err := q.Next(t.Context())
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil || len(request) > most || n < 1 {
						t.Fatalf("%d rows in %d bytes, at most %d: %v", n, len(request), most, err)
					}
					answer, err := a.Answer(t.Context(), request)
					if err != nil || string(answer) != string(appendFloats(nil, want[at:at+n])) {
						t.Fatalf("rows %d to %d: %x, want those of %v; %v", at, at+n, answer, want[at:at+n], err)
					}
					at += n
				}
				if err := q.Close(); err != nil || at != len(want) {
					t.Errorf("the questions end at row %d of %d, %v", at, len(want), err)
				}
			}
		}
		q, err := s.Questions(t.Context(), 1000)
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Skip(t.Context(), 13); err == nil || !strings.Contains(err.Error(), "rows that were there are not") {
			t.Errorf("13 of 12 rows are skipped: %v", err)
		}
		if _, err := s.Questions(t.Context(), 7); err == nil || !strings.Contains(err.Error(), "max_payload") {
			t.Errorf("messages of 7 bytes: %v", err)
		}
	}
}

// TestScheduleTravels: workers are told the schedule of a job, and the files of its forest and profile.
func TestScheduleTravels(t *testing.T) {
	for _, profile := range []string{"", "profile.json"} {
		s := &forestSubject{stump(forest.Float32), &Job{Model: "stump.json", Schedule: "parallel batch\n", Profile: profile, Result: forest.Leaves}}
		var shared []string
		settings, err := s.Settings(func(path string) (job.FileRef, error) {
			shared = append(shared, path)
			return job.FileRef{Name: path}, nil
		})
		got := settings.(*predictSettings)
		if err != nil || got.Schedule != s.query.Schedule || got.Result != "leaf" || got.Model.Name != "stump.json" || (got.Profile != nil) != (profile != "") || shared[len(shared)-1] != cmp.Or(profile, "stump.json") {
			t.Errorf("settings %+v, files %v; %v", got, shared, err)
		}
	}
}

// TestHostilePredictions refuses requests that are not whole rows, and answers that are not about
// the rows, or not classes, of which the result has the labels.
func TestHostilePredictions(t *testing.T) {
	f := stump(forest.Float64)
	m, err := pce.NewForest(f, pce.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, n := range []int{0, 1, 8, 15, 17, 24} {
		if _, err := (&predictAnswerer{model: m, what: forest.Class}).Answer(t.Context(), make([]byte, n)); !errors.Is(err, cluster.ErrJob) {
			t.Errorf("a request of %d bytes: %v", n, err)
		}
	}
	class := subjectOf(t, f, forest.Class, "1,2\n").Answers(nil)
	margin := subjectOf(t, f, forest.Margin, "1,2\n").Answers(nil)
	for _, x := range []float64{0, 1, -1, 2, 0.5, math.NaN(), math.Inf(1), 1e300} {
		answer := appendFloats(nil, []float64{1, x})
		if _, err := class.Keep(answer, 2); (x == 0 || x == 1) != (err == nil) || err != nil && !errors.Is(err, cluster.ErrCluster) {
			t.Errorf("class %v: %v", x, err)
		}
		if _, err := margin.Keep(answer, 2); err != nil {
			t.Errorf("margin %v: %v", x, err)
		}
		for _, a := range []job.Answers{class, margin} {
			if _, err := a.Keep(answer[:15], 2); !errors.Is(err, cluster.ErrCluster) {
				t.Errorf("15 bytes are taken for two rows: %v", err)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "out.csv")
	if err := class.Write(t.Context(), path, strings.NewReader(string(appendFloats(nil, []float64{1, 0}))), 2); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "wet\ndry\n" {
		t.Errorf("%q, %v", text, err)
	}
	if err := margin.Write(t.Context(), path, strings.NewReader(string(make([]byte, 15))), 2); err == nil {
		t.Error("a result is made of half an answer")
	}
}

// TestForestOfRows refuses forests whose rows would have more cells than rows have, before memory is taken for one.
func TestForestOfRows(t *testing.T) {
	for last, want := range map[string]string{"16777215": "16777216 features; rows have 1 to 1048576", "1048576": "1048577 features", "1048575": ""} {
		path := filepath.Join(t.TempDir(), "forest.txt")
		text := "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nmax_feature_idx=" + last + "\nobjective=regression\n\nTree=0\nnum_leaves=1\nnum_cat=0\nleaf_value=1\n\nend of trees\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := openForest(path, forest.Margin); (err == nil) != (want == "") || err != nil && (!errors.Is(err, forest.ErrForest) || !strings.Contains(err.Error(), want)) {
			t.Errorf("features up to %s: %v", last, err)
		}
	}
}

// TestLoadPredict refuses sessions of a forest that is not the run's, without a model, and of
// results that do not exist.
func TestLoadPredict(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "forest.json")
	text := `{"version": [1, 7, 4], "learner": {"learner_model_param": {"base_score": "0.5", "num_class": "0", "num_feature": "2"},
		"objective": {"name": "reg:squarederror"}, "gradient_booster": {"name": "gbtree", "model": {"tree_info": [0], "trees": [
		{"tree_param": {"num_nodes": "1"}, "left_children": [-1], "right_children": [-1], "split_indices": [0], "split_conditions": [2], "default_left": [0]}]}}}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := openForest(path, forest.Prediction)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := job.FileAt(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	digest := f.Digest()
	visits := run.Profile{Digest: hex.EncodeToString(digest[:]), Rows: 1}
	for i := range f.Trees {
		visits.Hits = append(visits.Hits, make([]int64, len(f.Trees[i].Nodes)))
	}
	counts, err := json.Marshal(visits)
	if err != nil {
		t.Fatal(err)
	}
	profilePath := filepath.Join(root, "profile.json")
	if err := os.WriteFile(profilePath, counts, 0o644); err != nil {
		t.Fatal(err)
	}
	profile, err := job.FileAt(t.Context(), profilePath)
	if err != nil {
		t.Fatal(err)
	}
	bus := simnet.New(1, simnet.Faults{}).Host("c").Bus()
	for name, tt := range map[string]struct {
		settings predictSettings
		digest   [32]byte
		want     string
		bad      bool // the job's fault
	}{
		"good":         {predictSettings{ref, "leaf", "", nil}, f.Digest(), "", false},
		"other digest": {predictSettings{ref, "leaf", "", nil}, [32]byte{}, "give all members the same version of pce", false},
		"no model":     {predictSettings{job.FileRef{}, "leaf", "", nil}, f.Digest(), "it has no model", true},
		"no result":    {predictSettings{ref, "", "", nil}, f.Digest(), "is not a kind of results", true},
		"schedule":     {predictSettings{ref, "leaf", "parallel batch\n", nil}, f.Digest(), "", false},
		"bad schedule": {predictSettings{ref, "margin", "parallel rows\n", nil}, f.Digest(), "the schedule: schedule: illegal", true},
		"profile":      {predictSettings{ref, "leaf", "tileNodes 2 hybrid\n", &profile}, f.Digest(), "", false},
		"no profile":   {predictSettings{ref, "leaf", "tileNodes 2 hybrid\n", nil}, f.Digest(), "wants to know how many rows", true},
		"bad profile":  {predictSettings{ref, "leaf", "tileNodes 2 hybrid\n", &ref}, f.Digest(), "is the profile of another forest", true},
		"no classes":   {predictSettings{ref, "class", "", nil}, f.Digest(), "it gives no classes", true},
	} {
		settings, err := json.Marshal(&tt.settings)
		if err != nil {
			t.Fatal(err)
		}
		files, err := job.NewFiles(t.TempDir(), []string{root})
		if err != nil {
			t.Fatal(err)
		}
		s, err := Kinds()[Predict].Load(t.Context(), &job.Loading{
			Run: "run-1", Settings: settings, Options: run.Options{Threads: 1}, Model: hex.EncodeToString(tt.digest[:]), Files: files, Blobs: bus.Blobs(),
		})
		if (err == nil) != (tt.want == "") || errors.Is(err, cluster.ErrJob) != tt.bad || !strings.Contains(fmt.Sprint(err), tt.want) || strings.Contains(fmt.Sprint(err), "\n") {
			t.Errorf("%s: %v; want %q, of the job: %t", name, err, tt.want, tt.bad)
		}
		if s != nil {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestNoTrees asks a forest without trees for leaves: each row has none, and the result a line for each, as pce predict prints.
func TestNoTrees(t *testing.T) {
	f := stump(forest.Float64)
	f.Trees = nil
	m, err := pce.NewForest(f, pce.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s := subjectOf(t, f, forest.Leaves, "1,2\n3,4\n") // of two files
	q, err := s.Questions(t.Context(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	request, rows, err := q.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	answer, err := (&predictAnswerer{model: m, what: forest.Leaves}).Answer(t.Context(), request)
	if err != nil || len(answer) > 0 {
		t.Fatalf("an answer of %d bytes, %v", len(answer), err)
	}
	a := s.Answers(nil)
	kept, err := a.Keep(answer, rows)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "out.csv")
	if err := a.Write(t.Context(), path, strings.NewReader(string(kept)), 4); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "\n\n\n\n" {
		t.Errorf("%q, %v; want four lines", text, err)
	}
}
