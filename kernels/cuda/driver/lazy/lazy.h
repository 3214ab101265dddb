// What lazy.c offers beside the calls of the driver.
#ifndef PCE_CUDA_LAZY_H
#define PCE_CUDA_LAZY_H

// pceCudaProblem starts the driver and returns why it did not come up, or "".
const char *pceCudaProblem(void);

#endif
