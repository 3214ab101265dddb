package emulator

import (
	"fmt"

	"github.com/pce-engine/pce/kernels"
)

// Fault says what a thread of a kernel did wrong, and where.
type Fault struct {
	Kernel string
	Line   int    // of the module's text; 0 for faults of a whole launch
	Text   string // the instruction
	Block  [3]int
	Thread int // in the block; -1 where no thread is to blame
	What   string
}

// Error names the kernel, the line, the block and the thread.
func (f *Fault) Error() string {
	if f.Line == 0 {
		return fmt.Sprintf("emulator: kernel %s: %s", f.Kernel, f.What)
	}
	s := fmt.Sprintf("emulator: kernel %s, line %d %q, block (%d,%d,%d)",
		f.Kernel, f.Line, f.Text, f.Block[0], f.Block[1], f.Block[2])
	if f.Thread >= 0 {
		s += fmt.Sprintf(", thread %d", f.Thread)
	}
	return s + ": " + f.What
}

// Unwrap makes every fault match kernels.ErrDevice.
func (f *Fault) Unwrap() error { return kernels.ErrDevice }

// refused returns an error of a call that the driver cannot do.
func refused(format string, args ...any) error {
	return fmt.Errorf("emulator: %s: %w", fmt.Sprintf(format, args...), kernels.ErrDevice)
}

// fail records what lane did wrong at the instruction that runs now.
func (w *warp) fail(lane int, format string, args ...any) signal {
	if w.fault == nil {
		w.fault = w.blk.faultAt(w.pc-1, w.index*32+lane, fmt.Sprintf(format, args...))
	}
	return failed
}

// faultAt returns a fault at operation pc; a thread of -1 names none.
func (b *block) faultAt(pc, thread int, what string) *Fault {
	k := b.run.kernel
	f := &Fault{Kernel: k.name, Block: b.ctaid, Thread: thread, What: what}
	if pc >= 0 && pc < len(k.ops) {
		f.Line, f.Text = k.ops[pc].line, k.textOf(&k.ops[pc])
	}
	return f
}
