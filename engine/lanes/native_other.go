//go:build !amd64 || noasm

package lanes

var native kernels
