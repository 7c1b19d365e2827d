// SPDX-License-Identifier: Apache-2.0
//
// Element types, named as PyTorch names them (boolean for torch.bool).
#pragma once

#include <cstdint>

#include "base/enum_names.hpp"

namespace ke::ir {

enum class DType : uint8_t {
  float64, float32, float16, bfloat16, int64, int32, int16, int8, uint8, boolean
};

inline constexpr int64_t kDTypeBytes[] = {8, 4, 2, 2, 8, 4, 2, 1, 1, 1};
constexpr int64_t bytes_of(DType type) { return kDTypeBytes[static_cast<int>(type)]; }
constexpr bool is_floating(DType type) { return type <= DType::bfloat16; }
constexpr bool is_integral(DType type) { return type >= DType::int64 && type <= DType::uint8; }

}  // namespace ke::ir

template <>
inline constexpr std::array<std::string_view, 10> ke::kEnumNames<ke::ir::DType>{
    "float64", "float32", "float16", "bfloat16", "int64",
    "int32",   "int16",   "int8",    "uint8",    "boolean"};
