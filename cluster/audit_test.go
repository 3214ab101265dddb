package cluster

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
	for _, shards := range []string{"-1", "32769", "1000000000000000"} {
		if _, err := CheckAudit(strings.NewReader(`{"step":1,"shards":` + shards + `}`)); !errors.Is(err, ErrCluster) || !strings.Contains(err.Error(), "want 0..32768") {
			t.Errorf("a step of %s shards: %v", shards, err)
		}
	}
}
