package compile

import "fmt"

// check validates the finished program: what it finds is a bug of a pass above.
func check(s *state) (string, error) {
	if err := s.prog.Validate(); err != nil {
		return "", fmt.Errorf("BUG: compile: %w", err)
	}
	return "ok", nil
}
