// A libcuda that is bound when it is first needed: each call looks its symbol up in
// the driver's libcuda.so.1, so a program that is linked against this file starts
// on machines without a driver. There, and where the driver does not come up, the
// number of devices is 0 and every other call returns the code of the failed start.
#define _GNU_SOURCE
#include <cuda.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "lazy.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *library;
static CUresult code; // of the start
static char problem[512];

static void start(void) {
  // On the path of the loader, else where containers of some clouds have it, and where
  // Windows puts it for its Linux guests.
  static const char *const others[] = {"/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"};
  library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    const char *why = dlerror(); // of the first place, which is the one that is expected
    snprintf(problem, sizeof problem, "%s", why != NULL ? why : "libcuda.so.1 cannot be loaded");
    for (size_t i = 0; library == NULL && i < sizeof others / sizeof *others; i++)
      library = dlopen(others[i], RTLD_NOW | RTLD_LOCAL);
  }
  if (library == NULL) {
    code = CUDA_ERROR_NO_DEVICE;
    return;
  }
  problem[0] = 0;
  CUresult (*init)(unsigned int) = dlsym(library, "cuInit");
  if (init == NULL) {
    snprintf(problem, sizeof problem, "libcuda.so.1 has no cuInit");
    code = CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
    return;
  }
  code = init(0);
  if (code != CUDA_SUCCESS) {
    const char *name = NULL;
    CUresult (*names)(CUresult, const char **) = dlsym(library, "cuGetErrorName");
    if (names == NULL || names(code, &name) != CUDA_SUCCESS || name == NULL) name = "error";
    snprintf(problem, sizeof problem, "cuInit returns %s (%d)", name, (int)code);
  }
}

// find returns the driver's function and keeps it in slot, or NULL.
static void *find(const char *symbol, _Atomic(void *) *slot) {
  void *f = atomic_load_explicit(slot, memory_order_acquire);
  if (f == NULL && code == CUDA_SUCCESS) {
    f = dlsym(library, symbol);
    atomic_store_explicit(slot, f, memory_order_release);
  }
  return f;
}

static CUresult missing(void) {
  return code != CUDA_SUCCESS ? code : CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
}

#define CUDA_CALL(symbol, parameters, arguments)        \
  CUresult symbol parameters {                          \
    static _Atomic(void *) slot;                        \
    pthread_once(&once, start);                         \
    CUresult (*call) parameters = find(#symbol, &slot); \
    return call != NULL ? call arguments : missing();   \
  }
#include "calls.h"
#undef CUDA_CALL

// cuInit does nothing: the driver starts with the first call that needs it, so
// that programs which compute on the CPU do not wait for it.
CUresult cuInit(unsigned int flags) {
  (void)flags;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
  static _Atomic(void *) slot;
  pthread_once(&once, start);
  CUresult (*f)(int *) = find("cuDeviceGetCount", &slot);
  if (f != NULL) return f(count);
  *count = 0;
  return code != CUDA_SUCCESS ? CUDA_SUCCESS : missing();
}

const char *pceCudaProblem(void) {
  pthread_once(&once, start);
  return problem;
}
