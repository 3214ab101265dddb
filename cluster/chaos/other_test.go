//go:build !linux

package chaos

import "testing"

// TestChaos says that it did not run.
func TestChaos(t *testing.T) {
	t.Skip("NOT RUN: the hosts of this test are network namespaces, which only Linux has")
}
