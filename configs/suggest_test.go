package configs

import (
	"slices"
	"testing"
)

func TestEditDistance(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"epochs", "epochs", 0}, {"epoch", "epochs", 1},
		{"epcohs", "epochs", 1}, {"rat-spn", "rat_spn", 0}, {"kitten", "sitting", 3}, {"ca", "abc", 3},
	} {
		if got := editDistance(tc.a, tc.b); got != tc.want {
			t.Errorf("editDistance(%q, %q) = %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
}

// TestSuggestFindsEveryTypo drops one letter of every key in turn and wants the
// key back, unless another key of the section is as close.
func TestSuggestFindsEveryTypo(t *testing.T) {
	try := func(section, key *field) {
		if len(key.key) < 4 {
			return
		}
		for i := range len(key.key) {
			typo := key.key[:i] + key.key[i+1:]
			if slices.ContainsFunc(section.fields, func(c *field) bool { return c != key && editDistance(typo, c.key) <= 1 }) {
				continue // as close to another key
			}
			if got, want := suggest(section, typo), "; did you mean "+key.path+"?"; got != want {
				t.Errorf("%q in %q: %s, want %s", typo, section.path, got, want)
			}
		}
	}
	for _, c := range schema.fields {
		try(schema, c)
	}
	schema.walk(func(f *field) {
		for _, c := range f.fields {
			try(f, c)
		}
	})
}
