package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// errScratch means that this machine has no room for temporary files.
var errScratch = errors.New("no folder for temporary files")

// scratch makes a folder for the files of a simulator or a compiler, which the caller removes. Where one for temporary files is missing,
// as in a container of one program, the fault is the machine's, and not that of a file of the user. Its path is absolute, as the programs
// that are given it run in other folders.
func scratch(prefix string) (string, error) {
	dir, err := os.MkdirTemp("", prefix)
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return "", fmt.Errorf("pce: %w: %w; set TMPDIR to one that can be written", errScratch, err)
	}
	return dir, nil
}
