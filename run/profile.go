package run

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/pce-engine/pce/forest"
)

// Profile says how many rows visit each node of each tree of a forest, which schedules use to
// choose the shapes of tiles. Its file is one JSON object.
type Profile struct {
	Digest string    `json:"digest"` // of the forest, in hexadecimal
	Rows   int       `json:"rows"`
	Hits   [][]int64 `json:"hits"` // [tree][node]
}

// maxProfile bounds files of profiles, in bytes.
const maxProfile = 1 << 30

// ReadProfile returns the counts of the profile at path, [tree][node]. It is refused if it is
// that of another forest than f.
func ReadProfile(path string, f *forest.Forest) ([][]int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return DecodeProfile(file, path, f)
}

// DecodeProfile is ReadProfile of a file that is open, which errors call path.
func DecodeProfile(file io.Reader, path string, f *forest.Forest) ([][]int64, error) {
	text, err := io.ReadAll(io.LimitReader(file, maxProfile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxProfile {
		return nil, fmt.Errorf("%w: %s: a profile has at most %d bytes; write it with pce forest profile", forest.ErrForest, path, maxProfile)
	}
	var p Profile
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fmt.Errorf("%w: %s: %w; write it with pce forest profile", forest.ErrForest, path, err)
	}
	if p.Digest != fmt.Sprintf("%x", f.Digest()) {
		return nil, fmt.Errorf("%w: %s is the profile of another forest; write one with pce forest profile", forest.ErrForest, path)
	}
	return p.Hits, nil
}
