// SPDX-License-Identifier: Apache-2.0
//
// No task, one task, then seven tasks of unequal size.
struct Args {
  const ke_tensor* in;
  ke_tensor* out;
};
static void part(int64_t i, void* raw) {
  const Args& a = *(Args*)raw;
  const int64_t rows = a.in[0].shape[0], k = a.in[0].shape[1];
  for (int64_t r = i * rows / 7; r < (i + 1) * rows / 7; ++r) {
    honest_row((const float*)a.in[0].data + r * k, (const float*)a.in[1].data,
               (float*)a.out[0].data + r * k, (float*)a.out[1].data + r, k);
  }
}
KERNEL {
  Args args{in, out};
  ctx->parallel_for(ctx->pool, 0, part, &args);
  ctx->parallel_for(ctx->pool, 1, part, &args);
  ctx->parallel_for(ctx->pool, 7, part, &args);
  return 0;
}
