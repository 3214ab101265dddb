package tensor

// TableLen is how many numbers of a table are weights to count.
var TableLen = tableLen
