package format

// Open and decode with a limit of what they read into memory.
var (
	OpenWithin   = open
	DecodeWithin = decode
)
