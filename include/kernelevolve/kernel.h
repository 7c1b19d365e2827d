/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel contract: what a native KernelEvolve kernel receives and must export. Plain C, stable,
 * versioned; fields are only ever appended. Tensor dtype codes are DLPack's (DLDataTypeCode).
 *
 * A kernel exports ke_launch. It may export ke_scratch_bytes or ke_scratch_bytes_for; the latter
 * wins. Inputs are read-only: a store to one faults. Inputs come as the tensor arguments of
 * forward() in order, then parameters, then buffers, then what forward() draws at random, in order
 * of the calls: dropout's mask as booleans (1 = kept, not yet scaled), the numbers of rand, randn
 * and their like, uniform numbers for bernoulli with a tensor of probabilities. A kernel draws
 * nothing itself. Outputs are fresh, contiguous and hold unspecified bytes. `data` and `scratch`
 * are 64-byte aligned. All work happens inside the call, and weights may change between calls.
 *
 * One source serves every shape case of a problem: case 0 is what get_inputs() returns, the lists
 * of get_input_cases() follow. Cases differ in the shapes of arguments and outputs and in nothing
 * else; an extent may be 0 or 1, and the data of an empty tensor must not be touched. ke_launch
 * finds the shapes in its tensors, and returns non-zero for those it does not know.
 */
#ifndef KERNELEVOLVE_KERNEL_H_
#define KERNELEVOLVE_KERNEL_H_

#include <stdint.h>

#define KE_ABI_VERSION 1

/* DLPack dtype codes used in ke_tensor::dtype_code. */
#define KE_DTYPE_INT 0
#define KE_DTYPE_UINT 1
#define KE_DTYPE_FLOAT 2
#define KE_DTYPE_BFLOAT 4
#define KE_DTYPE_BOOL 6

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  void* data;             /* first element; 64-byte aligned */
  const int64_t* shape;   /* ndim extents; null when ndim is 0 */
  const int64_t* strides; /* ndim strides, in elements; null when ndim is 0 */
  int32_t ndim;
  uint8_t dtype_code, dtype_bits;
  uint16_t dtype_lanes;
} ke_tensor;

typedef struct {
  void* scratch; /* 64-byte aligned, contents unspecified, kept by nobody between calls */
  int64_t scratch_bytes;
  int32_t num_threads; /* threads that parallel_for uses, the caller included */
  void* stream;        /* device stream on accelerator targets, null on native ones */
  /* Runs body(i, arg) once for each i in [0, n), on num_threads threads; returns when all are done.
   * Must not be nested. */
  void (*parallel_for)(void* pool, int64_t n, void (*body)(int64_t i, void* arg), void* arg);
  void* pool;
} ke_context;

/* Returns 0 when the outputs hold the result, anything else on failure. */
int ke_launch(const ke_tensor* inputs, int32_t input_count, ke_tensor* outputs,
              int32_t output_count, ke_context* context);

/* Optional: bytes of scratch that one call needs (default 0). */
int64_t ke_scratch_bytes(void);
int64_t ke_scratch_bytes_for(const ke_tensor* inputs, int32_t input_count);

#ifdef __cplusplus
}
#endif
#endif /* KERNELEVOLVE_KERNEL_H_ */
