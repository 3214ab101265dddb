package configs

import (
	"fmt"
	"slices"
	"strings"
)

// rulePath is the key that chooses how parameters are updated.
const rulePath = "train.rule"

// ofRule reports whether the value of a key is chosen for an update rule: what
// suits one is far off for another. A pseudocount is added to the counts of a
// batch under one rule, and beside those of one row under another.
func ofRule(path string) bool {
	return path == "train.pseudocount" || path == "train.momentum" || path == "train.subsets" || strings.HasPrefix(path, "train.step_size.")
}

// ofOtherRules takes the settings out of sources, weakest first, that were made for
// another rule than the one that the last source chooses: each was made for the
// rule that its own source or one before chose. The notes list them.
func ofOtherRules(sources [][]setting) (notes []string) {
	rules := make([]string, len(sources)) // by source
	rule := Default().Train.Rule
	for i, settings := range sources {
		for _, s := range settings {
			if s.field.path == rulePath {
				rule = s.value.(string)
			}
		}
		rules[i] = rule
	}
	for i, settings := range sources {
		if rules[i] == rule {
			continue
		}
		var names []string
		var first string
		sources[i] = slices.DeleteFunc(settings, func(s setting) bool {
			other := ofRule(s.field.path)
			if other {
				if names = append(names, s.field.path); first == "" {
					first = s.place
				}
			}
			return other
		})
		if len(names) > 0 {
			notes = append(notes, fmt.Sprintf("%s: %s: made for train.rule %s and not used by %s; to use them all the same, set them where the rule is set",
				first, strings.Join(names, ", "), rules[i], rule))
		}
	}
	return notes
}
