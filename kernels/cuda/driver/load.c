//go:build cuda && cgo

#include "load.h"

CUresult loadPTX(CUmodule *module, const char *text, char *log, size_t room) {
  CUjit_option option[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *value[] = {log, (void *)(uintptr_t)room};
  return cuModuleLoadDataEx(module, text, sizeof option / sizeof *option, option, value);
}
