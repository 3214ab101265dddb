package run

import "testing"

// TestSource tells programs apart by the version that the toolchain wrote, else by the revision.
func TestSource(t *testing.T) {
	for _, c := range []struct {
		version Version
		want    string
	}{
		{Version{Version: "v0.3.0", Revision: "ab12"}, "v0.3.0"},
		{Version{Version: "(devel)", Revision: "ab12"}, "ab12"},
		{Version{Version: "(devel)"}, ""},
	} {
		if got := c.version.Source(); got != c.want {
			t.Errorf("%+v is of %q, want %q", c.version, got, c.want)
		}
	}
}
