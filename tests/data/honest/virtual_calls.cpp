// SPDX-License-Identifier: Apache-2.0
//
// Every row through a table of functions, chosen at run time.
struct Row {
  virtual ~Row() = default;
  virtual void compute(const float* x, const float* w, float* y, float* s, int64_t k) const = 0;
};
struct PlainRow final : Row {
  void compute(const float* x, const float* w, float* y, float* s, int64_t k) const override {
    honest_row(x, w, y, s, k);
  }
};
struct EmptyRow final : Row {
  void compute(const float*, const float*, float*, float*, int64_t) const override {}
};
static const PlainRow plain{};
static const EmptyRow empty{};
static const Row* volatile choices[] = {&empty, &plain};
KERNEL {
  const int64_t rows = in[0].shape[0], k = in[0].shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    choices[k > 0]->compute((const float*)in[0].data + r * k, (const float*)in[1].data,
                            (float*)out[0].data + r * k, (float*)out[1].data + r, k);
  }
  return 0;
}
