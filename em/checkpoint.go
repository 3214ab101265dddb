package em

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"

	"github.com/pce-engine/pce/internal/safetensors"
	"github.com/pce-engine/pce/layers"
)

// A checkpoint is one safetensors file:
//
//	params   [NumParams]   the parameter buffer in the layout of the program
//	averages [AverageLen]  the averaged flows; only amid a phase of Anemone
//	best     [NumParams]   the parameters of the best epoch; only with patience or a start that is kept
//	metrics  [bytes]       the last lines of the metrics file; only if there are any
//	check    [1]           CRC-32C of all bytes before it
//
// Its metadata are the format and its version, the program's digest, and the
// settings, the fingerprint and the state as JSON. Version 1 had no fingerprint.
const (
	checkpointFormat  = "pce-checkpoint"
	checkpointVersion = 2
	// leastVersion is the oldest version that is read. Its runs cut an epoch
	// into other batches.
	leastVersion   = 1
	paramsTensor   = "params"
	averagesTensor = "averages"
	bestTensor     = "best"
	metricsTensor  = "metrics"
	checkTensor    = "check"
	checkBytes     = 8

	// chunkFloats is how many parameters are in memory at once on their way
	// from or to a file: several of the parts in which a card copies them, so that
	// the host takes one while the next arrives.
	chunkFloats = 1 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errOther means that a checkpoint is whole, but that this run cannot continue
// from it.
var errOther = errors.New("this run cannot continue from it")

// stateReader reads what a run has in its FlowSource.
type stateReader interface {
	ParamReader
	ReadAverages(ctx context.Context, offset int64, averages []float32) error
}

// writeCheckpoint writes parameters, averages, state, settings and the fingerprint to w as one
// safetensors file. src must not move while it is read. best may be nil: then the present
// parameters are the best ones, or none are kept.
func writeCheckpoint(ctx context.Context, w io.Writer, src stateReader, best []float32, set settings, facts []Fact, lines []byte, st *state) error {
	setText, err := json.Marshal(set)
	if err != nil {
		return err
	}
	factText, err := json.Marshal(facts)
	if err != nil {
		return err
	}
	stText, err := json.Marshal(st)
	if err != nil {
		return err
	}
	digest := src.Program().Digest()
	meta := map[string]string{
		"format": checkpointFormat, "version": strconv.Itoa(checkpointVersion), "program": hex.EncodeToString(digest[:]),
		"settings": string(setText), "fingerprint": string(factText), "state": string(stText),
	}
	n, averages := src.Program().NumParams, src.Program().AverageLen()
	tensors := []safetensors.Tensor{{Name: paramsTensor, DType: safetensors.F32, Shape: []int64{n}}}
	if st.Averages > 0 {
		tensors = append(tensors, safetensors.Tensor{Name: averagesTensor, DType: safetensors.F32, Shape: []int64{averages}})
	}
	if best != nil {
		tensors = append(tensors, safetensors.Tensor{Name: bestTensor, DType: safetensors.F32, Shape: []int64{n}})
	}
	if len(lines) > 0 {
		pad := -len(lines) & 7 // the checksum stays aligned
		lines = append(lines[:len(lines):len(lines)], make([]byte, pad)...)
		tensors = append(tensors, safetensors.Tensor{Name: metricsTensor, DType: safetensors.U8, Shape: []int64{int64(len(lines))}})
	}
	tensors = append(tensors, safetensors.Tensor{Name: checkTensor, DType: safetensors.U64, Shape: []int64{1}})
	sum := &summing{w: w}
	return safetensors.Write(sum, meta, tensors, func(t *safetensors.Tensor, s *safetensors.Sink) error {
		switch t.Name {
		case bestTensor:
			return safetensors.Append(s, best)
		case metricsTensor:
			return safetensors.Append(s, lines)
		case checkTensor:
			return safetensors.Append(s, []uint64{uint64(sum.crc)})
		}
		n, read := n, src.ReadParams
		if t.Name == averagesTensor {
			n, read = averages, src.ReadAverages
		}
		return eachChunk(n, func(at int64, buf []float32) error {
			if err := read(ctx, at, buf); err != nil {
				return err
			}
			return safetensors.Append(s, buf)
		})
	})
}

// eachChunk calls do for the chunks of n floats, with a buffer for each.
func eachChunk(n int64, do func(at int64, buf []float32) error) error {
	buf := make([]float32, min(n, chunkFloats))
	for at := int64(0); at < n; at += chunkFloats {
		if err := do(at, buf[:min(chunkFloats, n-at)]); err != nil {
			return err
		}
	}
	return nil
}

// summing passes bytes on and adds them to a checksum.
type summing struct {
	w   io.Writer
	crc uint32
}

// Write passes p on, and adds to the checksum what the writer took of it.
func (s *summing) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.crc = crc32.Update(s.crc, castagnoli, p[:n])
	return n, err
}

// checkpoint is an open checkpoint that has been checked.
type checkpoint struct {
	file        *safetensors.File
	version     int
	state       state
	settings    settings
	fingerprint []Fact
}

// readCheckpoint checks a file of size bytes in itself: format, version, sizes, checksum.
// Whether it fits the run is for the caller. Parameters stay in the file until they are
// copied; nothing is written anywhere.
func readCheckpoint(r io.ReaderAt, size int64) (*checkpoint, error) {
	if err := checkSum(r, size); err != nil {
		return nil, err
	}
	f, err := safetensors.NewFile(r, size)
	if err != nil {
		return nil, err
	}
	if f.Metadata["format"] != checkpointFormat {
		return nil, errors.New("it is not a checkpoint")
	}
	c := &checkpoint{file: f}
	if c.version, err = strconv.Atoi(f.Metadata["version"]); err != nil || c.version < leastVersion || c.version > checkpointVersion {
		return nil, fmt.Errorf("it has version %.20q, this program reads %d to %d", f.Metadata["version"], leastVersion, checkpointVersion)
	}
	parts := []struct {
		name string
		into any
	}{{"state", &c.state}, {"settings", &c.settings}, {"fingerprint", &c.fingerprint}}
	for _, p := range parts[:min(len(parts), c.version+1)] { // version 1 has no fingerprint
		if err := json.Unmarshal([]byte(f.Metadata[p.name]), p.into); err != nil {
			return nil, fmt.Errorf("its %s cannot be read: %w", p.name, err)
		}
	}
	if err := c.settings.validate(); err != nil {
		return nil, err
	}
	return c, c.state.validate()
}

// fits reports whether the parameters of a checkpoint that was read are those of a program,
// before any is copied. A checkpoint of another circuit gives an error that matches errOther:
// no other checkpoint of the run can fit either. Tensors that contradict the state in the file
// are damage, and an earlier checkpoint may do.
func (c *checkpoint) fits(prog *layers.Program) error {
	digest := prog.Digest()
	if c.file.Metadata["program"] != hex.EncodeToString(digest[:]) {
		return fmt.Errorf("%w: the circuit differs", errOther)
	}
	for _, want := range []struct {
		name string
		n    int64
		has  bool
	}{
		{paramsTensor, prog.NumParams, true},
		{averagesTensor, prog.AverageLen(), c.state.Averages > 0},
		{bestTensor, prog.NumParams, c.state.hasBest()},
	} {
		t, ok := c.file.Tensor(want.name)
		if ok != want.has {
			return fmt.Errorf("its state wants a tensor %q: %t, but it has one: %t", want.name, want.has, ok)
		}
		if ok && (t.DType != safetensors.F32 || t.Len() != want.n) {
			return fmt.Errorf("its tensor %q does not hold %d numbers, as the circuit wants", want.name, want.n)
		}
	}
	return nil
}

// checkSum compares the checksum at the end of a file with its other bytes.
func checkSum(r io.ReaderAt, size int64) error {
	if size < checkBytes {
		return fmt.Errorf("it has %d bytes", size)
	}
	sum := &summing{w: io.Discard}
	if _, err := io.Copy(sum, io.NewSectionReader(r, 0, size-checkBytes)); err != nil {
		return err
	}
	var last [checkBytes]byte
	if _, err := r.ReadAt(last[:], size-checkBytes); err != nil {
		return err
	}
	if want := binary.LittleEndian.Uint64(last[:]); want != uint64(sum.crc) {
		return fmt.Errorf("its checksum is %#x, its bytes give %#x; it is cut short or damaged", want, sum.crc)
	}
	return nil
}

// copyTo writes the n floats of a tensor to where write puts them.
func (c *checkpoint) copyTo(ctx context.Context, tensor string, n int64, write func(ctx context.Context, offset int64, src []float32) error) error {
	return eachChunk(n, func(at int64, buf []float32) error {
		if err := safetensors.Read(c.file, tensor, at, buf); err != nil {
			return err
		}
		if err := write(ctx, at, buf); err != nil {
			return elsewhere{err}
		}
		return nil
	})
}

// best returns the parameters of the best epoch, nil if there are none.
func (c *checkpoint) best() ([]float32, error) {
	if !c.state.hasBest() {
		return nil, nil
	}
	t, _ := c.file.Tensor(bestTensor)
	p := make([]float32, t.Len())
	return p, safetensors.Read(c.file, bestTensor, 0, p)
}

// lines returns the last lines of metrics; nil if there are none.
func (c *checkpoint) lines() ([]byte, error) {
	t, ok := c.file.Tensor(metricsTensor)
	if !ok {
		return nil, nil
	}
	text := make([]byte, t.Len())
	err := safetensors.Read(c.file, metricsTensor, 0, text)
	return bytes.TrimRight(text, "\x00"), err
}
