package serve

import (
	"strings"
	"testing"
)

// TestLongValues: what a parameter may be is told with a few of the values, of which a model of many columns has thousands.
func TestLongValues(t *testing.T) {
	values := make([]string, 5000)
	for i := range values {
		values[i] = strings.Repeat("v", 1000)
	}
	if text := listed(values); len(text) > 1000 || !strings.HasSuffix(text, `v..."] and 4992 more, which the model's metadata lists`) {
		t.Errorf("%d bytes: %.2000s", len(text), text)
	}
	if text := listed([]string{"a", "b"}); text != `["a" "b"]` {
		t.Error(text)
	}
}
