package cuda

// Ptr is an address in the memory of a card.
type Ptr uint64

// The handles of a driver are numbers; zero is none.
type (
	// Module is a loaded module.
	Module uint64
	// Function is a kernel of a module.
	Function uint64
	// Stream is a queue of work. Stream 0, the driver's default one, is not used.
	Stream uint64
	// Event is a point in a stream.
	Event uint64
	// Graph is recorded work, ready to launch.
	Graph uint64
)

// Card describes a GPU.
type Card struct {
	Name            string // "NVIDIA H200"
	Ordinal         int
	Major, Minor    int   // compute capability
	Memory          int64 // bytes
	Multiprocessors int
	SharedMemory    int // bytes that a block may ask for
	Clock           int // kHz
	DriverVersion   int // 12040 for 12.4; 0 for an emulator
}

// FunctionInfo is what the driver made of a kernel.
type FunctionInfo struct {
	Registers  int // of a thread
	Local      int // bytes of a thread that were spilled
	Shared     int // bytes, without the dynamic part
	MaxThreads int // of a block
}

// Launch says how a kernel starts. Args has a slot of eight bytes for each
// parameter; the low bytes of a slot hold a smaller one.
type Launch struct {
	Function Function
	Grid     [3]int
	Block    int
	Shared   int // bytes of dynamic shared memory
	Args     []uint64
}

// Driver is one GPU as this package needs it: the calls of the CUDA driver API on
// its primary context. Calls come one at a time, from the thread that opened the driver
// or was the last to enter it. Work on a stream is done
// in order; a method with a Stream returns before the work is done, others wait
// for theirs alone. Errors match kernels.ErrDevice, or kernels.ErrMemory where
// there is too little of it, and name the call, its arguments and the code.
type Driver interface {
	Card() Card
	// Enter lets the calling thread make the calls that follow. Its goroutine is locked
	// to it meanwhile.
	Enter() error

	FreeMemory() (int64, error)     // bytes that no program on the card has
	Alloc(bytes int64) (Ptr, error) // aligned to 256 bytes; its contents are not defined
	Free(Ptr) error
	// AllocHost returns memory of the host that copies can overlap with kernels.
	AllocHost(bytes int) ([]byte, error)
	FreeHost([]byte) error
	// CopyIn and CopyOut copy on a stream. The host's memory must stay as it is
	// until the stream has been waited for.
	CopyIn(dst Ptr, src []byte, s Stream) error
	CopyOut(dst []byte, src Ptr, s Stream) error
	// Clear sets bytes to zero.
	Clear(dst Ptr, bytes int64, s Stream) error

	// Load compiles PTX text and makes it ready.
	Load(text []byte) (Module, error)
	Unload(Module) error
	// Function finds a kernel and allows it shared bytes of dynamic shared memory.
	Function(m Module, name string, shared int) (Function, FunctionInfo, error)
	// Blocks returns how many blocks of threads threads, with shared bytes of dynamic
	// shared memory each, a multiprocessor runs at once.
	Blocks(f Function, threads, shared int) (int, error)
	Launch(l Launch, s Stream) error

	NewStream() (Stream, error)
	Wait(s Stream) error // until all work of the stream is done
	NewEvent() (Event, error)
	Record(e Event, s Stream) error
	WaitEvent(s Stream, e Event) error       // later work of the stream waits for the event
	Elapsed(from, to Event) (float64, error) // seconds between two events that have happened

	// Capture starts to record the work of a stream instead of doing it, other
	// streams included that wait for its events; Captured ends that.
	Capture(s Stream) error
	Captured(s Stream) (Graph, error)
	LaunchGraph(g Graph, s Stream) error
	FreeGraph(Graph) error

	Close() error
}
