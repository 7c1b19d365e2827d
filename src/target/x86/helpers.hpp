// SPDX-License-Identifier: Apache-2.0
//
// The small functions and vector types that printed kernels use, printed only when used. A helper
// is named by a key, "what:type": the type is one of our vectors (f32x8, f64x4, i32x8, u8x8…) or a
// scalar (f32, f64, i64…):
//
//   f32x8            typedef float f32x8 __attribute__((vector_size(32)));
//   load:f32x8       f32x8 load_f32x8(const float* p);           unaligned; compiles to one move
//   store:f32x8      void store(float* p, f32x8 v);
//   stream:f32x8     void stream(float* p, f32x8 v);             non-temporal, p aligned
//   splat:f32x8      f32x8 splat_f32x8(float v);
//   sum:f32x8 max:f32x8 min:f32x8    float sum_of(f32x8 v)…       across lanes
//   exp:f32x8 …      f32x8 exp_of(f32x8 v), every ir::UnaryOp and some binary ones (pow_of…)
//   convert:f64x8:f32x8   f64x8 to_f64x8(f32x8 v)
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace ke::x86 {

// The sources of the helpers and of everything they use, each once, users after used. A key that
// does not exist is a broken assumption.
std::string helper_sources(const std::set<std::string>& keys);

}  // namespace ke::x86
