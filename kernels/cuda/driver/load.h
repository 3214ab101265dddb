// Loading PTX text with the compiler's log.
#ifndef PCE_CUDA_LOAD_H
#define PCE_CUDA_LOAD_H

#include <cuda.h>

// loadPTX compiles a text and loads it. What the compiler says is wrong goes to log,
// which has room for that many bytes.
CUresult loadPTX(CUmodule *module, const char *text, char *log, size_t room);

#endif
