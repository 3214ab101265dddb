package configs

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "rewrite schema.json")

// TestJSONSchema compares schema.json, which editors read, with the schema.
func TestJSONSchema(t *testing.T) {
	got, err := JSONSchema()
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *rewrite {
		if err := os.WriteFile("schema.json", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("schema.json")
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("schema.json is stale (%v); run go test ./configs -rewrite and review the diff", err)
	}
}

// TestSchemaLines sees that every preset names its schema for editors.
func TestSchemaLines(t *testing.T) {
	for _, pattern := range []string{"*.yaml", "bench/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no files match %s (%v)", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			line, _, _ := strings.Cut(string(text), "\n")
			schema, ok := strings.CutPrefix(line, "# yaml-language-server: $schema=")
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), schema)); !ok || err != nil {
				t.Errorf("%s: first line %q does not lead to schema.json", file, line)
			}
		}
	}
}

// TestEveryKeyIsDocumented wants a meaning for every key, in the JSON Schema too.
func TestEveryKeyIsDocumented(t *testing.T) {
	text, err := JSONSchema()
	if err != nil {
		t.Fatal(err)
	}
	var root map[string]any
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	schema.walk(func(f *field) {
		if f.doc == "" || f.key == "" {
			t.Errorf("key %q has no doc or yaml tag", f.path)
		}
		if !bytes.Contains(text, []byte(`"`+f.key+`": {`)) {
			t.Errorf("key %q is not in the JSON Schema", f.path)
		}
	})
}
