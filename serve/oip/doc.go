// Package oip holds the messages of the Open Inference Protocol, version 2, and
// their three encodings: JSON, JSON followed by binary tensors, and protocol
// buffers. It knows no models and no network.
//
// # Shapes and units
//
// The contents of a tensor are bytes, whatever encoding they came in: elements in
// row-major order, little-endian, of Datatype.Size bytes each. An element of a BYTES
// tensor is its length in four bytes, then the bytes. Decoded tensors share memory
// with the message where they can.
//
// # Errors
//
// A message that cannot be decoded gives an error that matches ErrMessage. Its text
// names the tensor, the field and, for contents, the element. Every count that a
// message states is checked against the bytes that are there before anything is
// allocated.
//
// # Source
//
// The protocol's public text (kserve/open-inference-protocol) and, for binary
// tensors, the model repository and statistics, the extensions that Triton
// documents. Names and field numbers are theirs. JSON has no infinities and no NaN:
// both directions write them as protocol buffers do in JSON, as the strings "NaN",
// "Infinity" and "-Infinity", and null is read as NaN.
package oip
