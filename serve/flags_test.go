package serve

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// nodePath is where Node's modules are looked for.
var nodePath string

// screenshots is where tests of the page leave pictures of it.
var screenshots = flag.String("screenshots", "", "directory for pictures of the page")

func TestMain(m *testing.M) {
	home, _ := os.UserHomeDir() // "": not looked at
	usual := strings.Join([]string{os.Getenv("NODE_PATH"), filepath.Join(home, "node_modules"), "/usr/share/nodejs", "/usr/lib/node_modules"}, string(filepath.ListSeparator))
	flag.StringVar(&nodePath, "node", usual, "directories with Node's modules")
	flag.Parse()
	m.Run()
}
