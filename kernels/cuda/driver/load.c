//go:build cuda && cgo

#include "load.h"

#include <string.h>

enum { OPTIONS = 2 };

static const CUjit_option names[OPTIONS] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};

static void options(loaded *to, CUjit_option *option, void **value) {
  memcpy(option, names, sizeof names);
  value[0] = to->log;
  value[1] = (void *)(uintptr_t)(sizeof to->log - 1);
}

CUresult loadPTX(const char *text, size_t size, loaded *to) {
  CUjit_option option[OPTIONS];
  void *value[OPTIONS];
  options(to, option, value);
  CUlinkState link;
  to->call = "cuLinkCreate";
  CUresult r = cuLinkCreate(OPTIONS, option, value, &link);
  if (r != CUDA_SUCCESS) return r;

  void *code = NULL;
  size_t n = 0;
  to->call = "cuLinkAddData";
  r = cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)text, size, "kernels", 0, NULL, NULL);
  if (r == CUDA_SUCCESS) {
    to->call = "cuLinkComplete";
    r = cuLinkComplete(link, &code, &n);
  }
  if (r == CUDA_SUCCESS) {
    to->call = "cuModuleLoadData";
    r = cuModuleLoadData(&to->module, code);
  }
  // The code is the linker's until it is destroyed.
  if (r == CUDA_SUCCESS && (to->code = malloc(n)) != NULL) {
    memcpy(to->code, code, n);
    to->size = n;
  }
  CUresult end = cuLinkDestroy(link);
  if (r == CUDA_SUCCESS && end != CUDA_SUCCESS) {
    to->call = "cuLinkDestroy";
    cuModuleUnload(to->module);
    r = end;
  }
  return r;
}

CUresult loadPTXWhole(const char *text, loaded *to) {
  CUjit_option option[OPTIONS];
  void *value[OPTIONS];
  options(to, option, value);
  to->call = "cuModuleLoadDataEx";
  return cuModuleLoadDataEx(&to->module, text, OPTIONS, option, value);
}
