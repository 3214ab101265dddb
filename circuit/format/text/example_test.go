package text_test

import (
	"fmt"
	"os"

	"github.com/pce-engine/pce/circuit/format/text"
)

func ExampleParse() {
	m, err := text.Parse(`circuit 2
cloudy = input[2] x0 bernoulli 0.2 / 0.9
rain   = input[2] x1 bernoulli 0.1 / 0.6
both   = product cloudy rain
day    = sum both : 0.7 0.3
`)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := text.Print(os.Stdout, m.Graph, m.Meta, m.Params); err != nil {
		fmt.Println(err)
	}
	// Output:
	// circuit 2
	// n0 = input[2] x0 bernoulli 0.2 / 0.9
	// n1 = input[2] x1 bernoulli 0.1 / 0.6
	// n2 = product n0 n1
	// n3 = sum n2 : 0.7 0.3
}
