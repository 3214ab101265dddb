// Loading PTX text with the compiler's log.
#ifndef PCE_CUDA_LOAD_H
#define PCE_CUDA_LOAD_H

#include <cuda.h>

typedef struct {
  CUmodule module;
  void *code;       // compiled, from malloc, or NULL
  size_t size;      // of code
  const char *call; // the call that failed
  char log[16384];  // what the compiler says is wrong
} loaded;

// loadPTX compiles the text, which ends with a zero byte that size counts, keeps
// the code, and loads it.
CUresult loadPTX(const char *text, size_t size, loaded *to);

// loadPTXWhole lets the driver do both at once, which gives no code.
CUresult loadPTXWhole(const char *text, loaded *to);

#endif
