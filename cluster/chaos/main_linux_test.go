package chaos

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const (
	// roleVariable makes this program the broker instead of a test.
	roleVariable = "PCE_CHAOS_ROLE"
	// nestedVariable marks all processes that a test starts.
	nestedVariable = "PCE_CHAOS_NESTED"
	// requireVariable turns what is missing into a failure.
	requireVariable = "PCE_REQUIRE_NETNS"
)

// TestMain lets this program be the broker of a test. A child never runs tests.
func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		if role != "broker" {
			panic("chaos: there is no role " + role)
		}
		if err := beBroker(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv(nestedVariable) != "" {
		panic("chaos: a child of the test would run the tests again")
	}
	os.Exit(m.Run())
}

// environment is that of a child: settings of pce do not get through, as pce
// refuses variables that it does not know.
func environment(more ...string) []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "PCE_") {
			env = append(env, kv)
		}
	}
	return append(env, more...)
}
