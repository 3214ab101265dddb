package format

// DecodeWithin decodes with a limit of what is unpacked.
var DecodeWithin = decode
