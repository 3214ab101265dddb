package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestLists: names are separated by commas, in quotes where they need them, over all flags of a name. What has more than one line is
// refused, not cut behind the first.
func TestLists(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want []string
	}{
		{nil, nil}, {[]string{""}, []string{}}, {[]string{"a"}, []string{"a"}}, {[]string{"a,b c", "d"}, []string{"a", "b c", "d"}},
		{[]string{"\"a,b\",c\n"}, []string{"a,b", "c"}}, {[]string{"\"a\nb\",c"}, []string{"a\nb", "c"}},
	} {
		var got []string
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		addList(flags, &got, "of", "")
		var args []string
		for _, arg := range tc.args {
			args = append(args, "--of", arg)
		}
		if err := flags.Parse(args); err != nil || !slices.Equal(got, tc.want) || (got == nil) != (tc.want == nil) {
			t.Errorf("%q: %q, %v; want %q", tc.args, got, err, tc.want)
		}
	}
	for _, command := range []string{"loglik --given", "conditional --of", "quantiles --of", "moments --covariance", "mpe --of"} {
		args := append([]string{"query"}, strings.Fields(command)...)
		for _, list := range []string{"a\nb,c", "a\r\nb", "a,\"b", "a\"b\",c"} {
			code, _, stderr := do(t, "", append(slices.Clone(args), list, "--model", "none", "--data", "none.csv")...)
			if code != exitUsage || !strings.Contains(stderr, "is not a list of names") || strings.Count(stderr, "\n") != 2 {
				t.Errorf("%s %q: exit %d, %s", command, list, code, stderr)
			}
		}
	}
}
