//go:build cuda && cgo

#include "load.h"

CUresult loadPTX(CUmodule *module, const char *text, char *log, size_t room) {
  // First without options, which is what the driver surely keeps in its cache on the
  // disk; again only for the log of what is wrong.
  CUresult r = cuModuleLoadDataEx(module, text, 0, NULL, NULL);
  if (r == CUDA_SUCCESS) return r;
  CUjit_option option[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *value[] = {log, (void *)(uintptr_t)room};
  return cuModuleLoadDataEx(module, text, sizeof option / sizeof *option, option, value);
}
