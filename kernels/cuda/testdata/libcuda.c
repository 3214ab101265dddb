// A driver without a card, for tests: it keeps "device" memory on the host, records
// its calls in the file that FAKE_CUDA_LOG names, and lets the call that
// FAKE_CUDA_FAIL names ("symbol=code") return that code. Work on a stream is done
// at once, or kept in a graph while the stream captures. A call that needs a context
// fails in a thread in which none is current.
#include <cuda.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void note(const char *format, ...) {
  const char *path = getenv("FAKE_CUDA_LOG");
  FILE *f = path != NULL ? fopen(path, "a") : NULL;
  if (f == NULL) return;
  va_list args;
  va_start(args, format);
  vfprintf(f, format, args);
  va_end(args);
  fputc('\n', f);
  fclose(f);
}

static CUresult planned(const char *symbol) {
  const char *fail = getenv("FAKE_CUDA_FAIL");
  size_t n = strlen(symbol);
  if (fail == NULL || strncmp(fail, symbol, n) != 0 || fail[n] != '=') return CUDA_SUCCESS;
  return (CUresult)atoi(fail + n + 1);
}

static __thread int has_context; // whether this thread has a current one

// needs_context tells the calls that want a current context from others.
static int needs_context(const char *symbol) {
  static const char *const others[] = {"cuInit", "cuDriver", "cuDevice", "cuCtx", "cuGet"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (strncmp(symbol, others[i], strlen(others[i])) == 0) return 0;
  return 1;
}

// CALL notes a call and lets it fail if that is the plan, or if its thread has no context.
#define CALL(...)                                                                  \
  do {                                                                             \
    note(__VA_ARGS__);                                                             \
    CUresult code_ = planned(__func__);                                            \
    if (code_ != CUDA_SUCCESS) return code_;                                       \
    if (needs_context(__func__) && !has_context) return CUDA_ERROR_INVALID_CONTEXT; \
  } while (0)

struct work {
  enum { IN_OUT, CLEAR, ADD } kind;
  void *to;
  const void *from;
  size_t bytes;
  uint32_t n, value;
};

struct CUgraph_st {
  struct work list[64];
  int n;
};
struct CUgraphExec_st { struct CUgraph_st graph; };
struct CUstream_st { CUgraph capture; };
struct CUevent_st { float at; };
struct CUmod_st { char text[4096]; };
struct CUfunc_st { char name[64]; };

static float now; // milliseconds, a half for each piece of work

static void run(const struct work *w) {
  now += 0.5f;
  switch (w->kind) {
    case IN_OUT: memcpy(w->to, w->from, w->bytes); break;
    case CLEAR: memset(w->to, 0, w->bytes); break;
    case ADD:
      for (uint32_t i = 0; i < w->n; i++) ((uint32_t *)w->to)[i] += w->value;
  }
}

static void put(CUstream s, struct work w) {
  if (s->capture != NULL)
    s->capture->list[s->capture->n++] = w;
  else
    run(&w);
}

CUresult cuInit(unsigned flags) { CALL("cuInit %u", flags); return CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int *v) { CALL("cuDriverGetVersion"); *v = 12040; return CUDA_SUCCESS; }
CUresult cuDeviceGetCount(int *n) { CALL("cuDeviceGetCount"); *n = 1; return CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice *d, int i) { CALL("cuDeviceGet %d", i); *d = i; return CUDA_SUCCESS; }

CUresult cuDeviceGetName(char *to, int room, CUdevice d) {
  CALL("cuDeviceGetName %d", d);
  snprintf(to, (size_t)room, "Fake %d", d);
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *n, CUdevice d) { CALL("cuDeviceTotalMem %d", d); *n = 3ull << 30; return CUDA_SUCCESS; }

CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice d) {
  CALL("cuDeviceGetAttribute %d %d", a, d);
  switch ((int)a) {
    case 13: *v = 1980000; break;  // clock
    case 16: *v = 132; break;      // multiprocessors
    case 75: *v = 9; break;        // capability
    case 76: *v = 0; break;
    case 97: *v = 232448; break;   // shared memory with leave
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult code, const char **to) {
  switch ((int)code) {
    case 1: *to = "CUDA_ERROR_INVALID_VALUE"; return CUDA_SUCCESS;
    case 2: *to = "CUDA_ERROR_OUT_OF_MEMORY"; return CUDA_SUCCESS;
    case 100: *to = "CUDA_ERROR_NO_DEVICE"; return CUDA_SUCCESS;
    case 218: *to = "CUDA_ERROR_INVALID_PTX"; return CUDA_SUCCESS;
    case 222: *to = "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"; return CUDA_SUCCESS;
    case 500: *to = "CUDA_ERROR_NOT_FOUND"; return CUDA_SUCCESS;
    case 700: *to = "CUDA_ERROR_ILLEGAL_ADDRESS"; return CUDA_SUCCESS;
    case 901: *to = "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"; return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult code, const char **to) {
  *to = "as the test wants";
  return code == CUDA_ERROR_OUT_OF_MEMORY ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static int context;

CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d) {
  CALL("cuDevicePrimaryCtxRetain %d", d);
  *c = (CUcontext)&context;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice d) { CALL("cuDevicePrimaryCtxRelease %d", d); return CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext c) {
  CALL("cuCtxSetCurrent %d", c == (CUcontext)&context);
  has_context = c != NULL;
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *p, size_t n) {
  CALL("cuMemAlloc %zu", n);
  *p = (CUdeviceptr)(uintptr_t)aligned_alloc(256, (n + 255) / 256 * 256);
  return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr p) { CALL("cuMemFree"); free((void *)(uintptr_t)p); return CUDA_SUCCESS; }
CUresult cuMemGetInfo(size_t *a, size_t *b) { CALL("cuMemGetInfo"); *a = 1 << 30; *b = 3ull << 30; return CUDA_SUCCESS; }
CUresult cuMemHostAlloc(void **p, size_t n, unsigned flags) { CALL("cuMemHostAlloc %zu %u", n, flags); *p = malloc(n); return CUDA_SUCCESS; }
CUresult cuMemFreeHost(void *p) { CALL("cuMemFreeHost"); free(p); return CUDA_SUCCESS; }

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t n, CUstream s) {
  CALL("cuMemcpyHtoDAsync %zu", n);
  put(s, (struct work){IN_OUT, (void *)(uintptr_t)to, from, n, 0, 0});
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t n, CUstream s) {
  CALL("cuMemcpyDtoHAsync %zu", n);
  put(s, (struct work){IN_OUT, to, (void *)(uintptr_t)from, n, 0, 0});
  return CUDA_SUCCESS;
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char v, size_t n, CUstream s) {
  CALL("cuMemsetD8Async %u %zu", v, n);
  put(s, (struct work){CLEAR, (void *)(uintptr_t)to, NULL, n, 0, 0});
  return CUDA_SUCCESS;
}

static CUresult compile(const char *text, char *log, size_t room) {
  if (strstr(text, "unsupported") != NULL) return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  if (strstr(text, "mistake") != NULL)
    snprintf(log, room, "line 3; error: mistake\nfatal: aborted\n");
  else if (strstr(text, "flood") != NULL)
    memset(log, 'x', room);
  else
    return CUDA_SUCCESS;
  return CUDA_ERROR_INVALID_PTX;
}

CUresult cuModuleLoadDataEx(CUmodule *m, const void *text, unsigned n, CUjit_option *o, void **v) {
  CALL("cuModuleLoadDataEx %zu", strlen(text));
  char *log = NULL;
  size_t room = 0;
  for (unsigned i = 0; i < n; i++) {
    if (o[i] == CU_JIT_ERROR_LOG_BUFFER) log = v[i];
    if (o[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) room = (size_t)(uintptr_t)v[i];
  }
  char none[1];
  if (n == 0) log = none, room = 1;
  else if (log == NULL || room <= 100) return CUDA_ERROR_INVALID_VALUE;
  CUresult r = compile(text, log, room);
  if (r != CUDA_SUCCESS) return r;
  *m = calloc(1, sizeof **m);
  snprintf((*m)->text, sizeof (*m)->text, "%s", (const char *)text);
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule m) { CALL("cuModuleUnload"); free(m); return CUDA_SUCCESS; }

CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
  CALL("cuModuleGetFunction %s", name);
  if (strstr(m->text, name) == NULL) return CUDA_ERROR_NOT_FOUND;
  *f = calloc(1, sizeof **f);
  snprintf((*f)->name, sizeof (*f)->name, "%s", name);
  return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int v) {
  CALL("cuFuncSetAttribute %s %d %d", f->name, a, v);
  return v <= 232448 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuFuncGetAttribute(int *v, CUfunction_attribute a, CUfunction f) {
  CALL("cuFuncGetAttribute %s %d", f->name, a);
  switch ((int)a) {
    case 0: *v = 256; break;  // threads of a block
    case 1: *v = 512; break;  // shared memory
    case 3: *v = 8; break;    // local memory
    case 4: *v = 40; break;   // registers
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

// Blocks of a multiprocessor with 1024 threads.
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, CUfunction f, int threads, size_t shared) {
  CALL("cuOccupancyMaxActiveBlocksPerMultiprocessor %s %d %zu", f->name, threads, shared);
  if (threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  *n = 1024 / threads;
  return CUDA_SUCCESS;
}

// The one kernel adds a value to n numbers: add(.u64 to, .u32 n, .u32 value).
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, CUstream s, void **args, void **extra) {
  CALL("cuLaunchKernel %s %u %u %u, %u %u %u, %u, extra %d", f->name, gx, gy, gz, bx, by, bz, shared, extra != NULL);
  put(s, (struct work){ADD, *(void **)args[0], NULL, 0, *(uint32_t *)args[1], *(uint32_t *)args[2]});
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *s, unsigned flags) { CALL("cuStreamCreate %u", flags); *s = calloc(1, sizeof **s); return CUDA_SUCCESS; }
CUresult cuStreamDestroy(CUstream s) { CALL("cuStreamDestroy"); free(s); return CUDA_SUCCESS; }
CUresult cuStreamSynchronize(CUstream s) { CALL("cuStreamSynchronize"); return s->capture == NULL ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED; }
CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags) {
  CALL("cuStreamWaitEvent %d %d %u", s != NULL, e != NULL, flags);
  return CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent *e, unsigned flags) { CALL("cuEventCreate %u", flags); *e = calloc(1, sizeof **e); return CUDA_SUCCESS; }
CUresult cuEventDestroy(CUevent e) { CALL("cuEventDestroy"); free(e); return CUDA_SUCCESS; }
CUresult cuEventRecord(CUevent e, CUstream s) { CALL("cuEventRecord %d", s != NULL); e->at = now; return CUDA_SUCCESS; }
CUresult cuEventElapsedTime(float *to, CUevent a, CUevent b) { CALL("cuEventElapsedTime"); *to = b->at - a->at; return CUDA_SUCCESS; }

CUresult cuStreamBeginCapture(CUstream s, CUstreamCaptureMode mode) {
  CALL("cuStreamBeginCapture %d", mode);
  s->capture = calloc(1, sizeof *s->capture);
  return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream s, CUgraph *g) {
  *g = s->capture;
  s->capture = NULL;
  CALL("cuStreamEndCapture");
  return CUDA_SUCCESS;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec *e, CUgraph g, unsigned long long flags) {
  CALL("cuGraphInstantiateWithFlags %llu", flags);
  *e = calloc(1, sizeof **e);
  (*e)->graph = *g;
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph g) { CALL("cuGraphDestroy"); free(g); return CUDA_SUCCESS; }
CUresult cuGraphExecDestroy(CUgraphExec e) { CALL("cuGraphExecDestroy"); free(e); return CUDA_SUCCESS; }
CUresult cuGraphLaunch(CUgraphExec e, CUstream s) {
  CALL("cuGraphLaunch %d", s != NULL);
  for (int i = 0; i < e->graph.n; i++) run(&e->graph.list[i]);
  return CUDA_SUCCESS;
}
