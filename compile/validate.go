package compile

import (
	"fmt"

	"github.com/pce-engine/pce/circuit"
)

// validate refuses options out of range and graphs that are not circuits, so that
// later passes meet neither.
func validate(s *state) (string, error) {
	if err := s.opts.validate(); err != nil {
		return "", err
	}
	if err := circuit.Validate(s.graph); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d nodes, %d variables", len(s.graph.Nodes), s.graph.NumVars), nil
}
