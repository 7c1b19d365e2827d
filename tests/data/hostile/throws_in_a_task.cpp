// SPDX-License-Identifier: Apache-2.0
//
// Lets an exception out of a task of the pool.
KERNEL {
  ctx->parallel_for(
      ctx->pool, 64, [](int64_t i, void*) { throw i; }, nullptr);
  return honest(in, out);
}
