package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/emulator"
)

func main() {
	runtime.LockOSThread() // a context belongs to a thread
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "card:", err)
		os.Exit(1)
	}
}

// parts are what can be asked for.
var parts = map[string]func(*probe) error{
	"warmup":    (*probe).warmUp,
	"ceilings":  (*probe).ceilings,
	"products":  (*probe).products,
	"functions": (*probe).functions,
	"variants":  (*probe).variants,
}

func run(args []string, out io.Writer) error {
	f := flag.NewFlagSet("card", flag.ContinueOnError)
	device := f.String("device", "cuda:0", "cuda:0, cuda:1, ... or emulator")
	name := f.String("part", "", "warmup, ceilings, products, functions or variants")
	tiny := f.Bool("tiny", false, "sizes for the emulator")
	if err := f.Parse(args); err != nil {
		return err
	}
	part, ok := parts[*name]
	if !ok {
		return fmt.Errorf("part %q; want warmup, ceilings, products, functions or variants", *name)
	}
	drv, err := open(*device)
	if err != nil {
		return err
	}
	p := &probe{drv: drv, card: drv.Card(), tiny: *tiny, out: json.NewEncoder(out)}
	if p.stream, err = drv.NewStream(); err == nil {
		err = part(p)
	}
	if closed := drv.Close(); err == nil {
		err = closed
	}
	return err
}

// open opens a card by name. The emulator is as far off as a Hopper card.
func open(device string) (cuda.Driver, error) {
	if device == "emulator" {
		return emulator.New(emulator.Options{Approx: 7, MMA: hopper}), nil
	}
	number, ok := strings.CutPrefix(device, "cuda:")
	ordinal, err := strconv.Atoi(number)
	if !ok || err != nil {
		return nil, fmt.Errorf("device %q; want cuda:0, cuda:1, ... or emulator", device)
	}
	return cuda.OpenDriver(ordinal)
}

// reading is a line of the output.
type reading struct {
	Reading string  `json:"reading"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
	Note    string  `json:"note,omitempty"`
}
