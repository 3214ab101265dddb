package tensorboard

import "encoding/binary"

// Wire types of protocol buffers.
const (
	varint  = 0
	fixed64 = 1
	bytes   = 2
	fixed32 = 5
)

func appendKey(b []byte, field, wire int) []byte {
	return binary.AppendUvarint(b, uint64(field<<3|wire))
}

func appendVarint(b []byte, field int, x uint64) []byte {
	return binary.AppendUvarint(appendKey(b, field, varint), x)
}

func appendFixed64(b []byte, field int, bits uint64) []byte {
	return binary.LittleEndian.AppendUint64(appendKey(b, field, fixed64), bits)
}

func appendFixed32(b []byte, field int, bits uint32) []byte {
	return binary.LittleEndian.AppendUint32(appendKey(b, field, fixed32), bits)
}

func appendBytes(b []byte, field int, x []byte) []byte {
	b = binary.AppendUvarint(appendKey(b, field, bytes), uint64(len(x)))
	return append(b, x...)
}

func appendString(b []byte, field int, x string) []byte { return appendBytes(b, field, []byte(x)) }
