package configs

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestLargeConfigs wants every config that is printed to be read, and one that would take more bytes than are read refused before it is.
func TestLargeConfigs(t *testing.T) {
	cfg := Default()
	cfg.Output = "runs/" + cfg.Name
	long := func(n int) *Config {
		own := *cfg
		for i := range n {
			own.Data.Columns = append(own.Data.Columns, Column{Name: fmt.Sprintf("%0400d", i), Type: "continuous"})
		}
		return &own
	}
	if testing.Short() { // the library's parser takes a second for each
		roundTrip(t, long(600))
		return
	}
	roundTrip(t, long(3000)) // 1.3 MiB
	if text, err := long(10000).YAML(); !errors.Is(err, ErrConfig) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}
