package configs

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
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

// TestJSONSchemaNull: what YAML reads as nothing is allowed where a config may have it, a file or a section without a key, and
// is the default of no key.
func TestJSONSchemaNull(t *testing.T) {
	text, err := JSONSchema()
	if err != nil {
		t.Fatal(err)
	}
	var root map[string]any
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte(`"default": null`)) {
		t.Error("null is the default of a key, which refuses it")
	}
	takesNull := func(path string, of any) bool {
		types, _ := of.(map[string]any)["type"].([]any)
		file := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(file, []byte(path), 0o644); err != nil {
			t.Fatal(err)
		}
		_, _, err := Load(Options{Files: []string{file}})
		if got, want := slices.Contains(types, any("null")), err == nil; got != want {
			t.Errorf("%q is allowed by the JSON Schema: %v, by the checks of configs: %v", path, got, err)
			return false
		}
		return true
	}
	properties := root["properties"].(map[string]any)
	if takesNull("", root) {
		for _, key := range []string{"name", "train", "model", "job"} {
			takesNull(key+":\n", properties[key])
		}
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
