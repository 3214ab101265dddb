//go:build !unix

package format

import "os"

// mapped maps no file here.
func mapped(*os.File, int) ([]byte, func()) { return nil, nil }
