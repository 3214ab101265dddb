package configs

import "strings"

// suggest returns "; did you mean x?" for an unknown key of section f, or what
// the section knows if nothing comes close.
func suggest(f *field, key string) string {
	best, distance := "", 1+len(key)/3
	consider := func(path, candidate string) {
		if d := editDistance(key, candidate); d < distance || d == distance && best == "" {
			best, distance = path, d
		}
	}
	for _, c := range f.fields {
		consider(c.path, c.key)
	}
	if best == "" { // the right key in the wrong section
		distance = 0
		schema.walk(func(c *field) { consider(c.path, c.key) })
	}
	if best != "" {
		return "; did you mean " + best + "?"
	}
	keys := make([]string, len(f.fields))
	for i, c := range f.fields {
		keys[i] = c.key
	}
	return "; known keys: " + strings.Join(keys, ", ")
}

// suggestWord returns "; did you mean x?" for a word that is not in the list.
func suggestWord(words []string, got string) string {
	best, distance := "", 1+len(got)/3
	for _, w := range words {
		if d := editDistance(strings.ToLower(got), w); d <= distance {
			best, distance = w, d-1
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// variableOf returns the environment variable that sets the key at a path.
func variableOf(path string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(path, ".", "__"))
}

// suggestVariable returns the right spelling of a variable that has too few or too many
// underscores, such as PCE_TRAIN_EPOCHS, or "".
func suggestVariable(name string) string {
	letters := strings.NewReplacer("_", "").Replace
	found := ""
	schema.walk(func(f *field) {
		if v := variableOf(f.path); found == "" && letters(v) == letters(strings.ToUpper(name)) && lookup(f.path) != nil {
			found = "; write " + v + ", with two underscores between a section and its keys"
		}
	})
	return found
}

// Keys lists the dotted paths that --set takes, in the order of the schema, each with
// what it means.
func Keys() (keys []Key) {
	schema.walk(func(f *field) {
		if !f.isSection() && lookup(f.path) == f {
			keys = append(keys, Key{Path: f.path, Doc: f.doc, Values: f.enum})
		}
	})
	return keys
}

// Key describes a key of a config, for completion and messages.
type Key struct {
	Path, Doc string
	Values    []string // that it may have; nil: any of its type
}

// walk visits every key below f, parents first.
func (f *field) walk(visit func(*field)) {
	for _, c := range f.fields {
		visit(c)
		c.walk(visit)
	}
}

// editDistance counts the insertions, deletions, substitutions and swaps of
// neighbours that turn a into b. Hyphens and underscores count as equal.
func editDistance(a, b string) int {
	a, b = strings.ReplaceAll(a, "-", "_"), strings.ReplaceAll(b, "-", "_")
	if len(a) > 64 {
		a = a[:64]
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
