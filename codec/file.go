package codec

import (
	"encoding/binary"
	"hash/crc32"
)

// A compressed file is
//
//	magic     "PCEz"
//	version   1 byte
//	digest    16 bytes: the beginning of the SHA-256 of the model
//	facts     how the file is written: a length (uvarint), then that many bytes
//	checksum  4 bytes: CRC-32C of all before it
//
// then blocks, each with
//
//	records   how many (uvarint), 1 or more
//	length    of the stream (uvarint)
//	stream    of the range coder
//	checksum  4 bytes: CRC-32C of the block's number (8 bytes) and of the block before it
//
// and at the end a zero byte and the first 8 bytes of the SHA-256 of the content.
// Numbers of fixed length have the lowest byte first.
const (
	magic        = "PCEz"
	version      = 1
	digestBytes  = 16
	contentBytes = 8

	maxFacts  = 1 << 23
	maxStream = 1 << 25 // bytes of a block: 2^20 cells of 4 bytes, and texts
	startSize = 1 << 16 // bytes by which a framing is found, or more if the first line is longer
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Stats say what was compressed or restored.
type Stats struct {
	Rows     int64 // records that are rows of the model
	Literals int64 // records that are not, and were stored as text
	Content  int64 // bytes of the content
	Stored   int64 // bytes of the compressed file

	// FirstLiteral is the number of the first literal record, from 1 (a line of column
	// names is not one), and Problem why
	// it is not a row. Compress sets them.
	FirstLiteral int64
	Problem      string
}

// blockSum is the checksum of a block.
func blockSum(number uint64, header, stream []byte) uint32 {
	sum := crc32.Checksum(binary.LittleEndian.AppendUint64(nil, number), castagnoli)
	return crc32.Update(crc32.Update(sum, castagnoli, header), castagnoli, stream)
}
