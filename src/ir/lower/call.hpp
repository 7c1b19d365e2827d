// SPDX-License-Identifier: Apache-2.0
//
// Typed access to the arguments of one ATen call, and the dtype that they promote to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/lower/context.hpp"

namespace ke::ir {

// One call's arguments, by position or, when not given so, by name. Absent optional ones are None.
class Call {
 public:
  static constexpr size_t kKeyword = SIZE_MAX;  // "position" of keyword-only arguments

  Call(const LoweringContext& context, const Node& node) : context_(context), node_(node) {}

  const Arg& arg(size_t position, std::string_view name) const;
  bool has(size_t position, std::string_view name) const { return !arg(position, name).is_none(); }

  Result<ValueId> value(size_t position, std::string_view name) const;
  Result<std::vector<ValueId>> values(size_t position, std::string_view name) const;
  Result<int64_t> integer(size_t position, std::string_view name,
                          std::optional<int64_t> fallback = {}) const;
  Result<double> number(size_t position, std::string_view name,
                        std::optional<double> fallback = {}) const;
  Result<bool> flag(size_t position, std::string_view name, bool fallback) const;
  Result<std::string> text(size_t position, std::string_view name, std::string fallback) const;
  // A list of integers; a lone integer counts as a list of one, None as an empty one.
  Result<std::vector<int64_t>> integers(size_t position, std::string_view name) const;

  // The argument, tensor or Python scalar, as an element of the result's shape and in `dtype`.
  Result<ExprPtr> operand(size_t position, std::string_view name, DType dtype,
                          const Shape& shape) const;
  Result<ExprPtr> scalar(size_t position, std::string_view name, DType dtype) const;

  Result<ValueId> result(size_t position = 0) const;
  Result<const Value*> result_value(size_t position = 0) const;
  Error wrong(std::string_view what) const;  // Errc::invalid "aten.foo: what"
  Error unavailable(std::string_view what) const;

 private:
  const LoweringContext& context_;
  const Node& node_;
};

// torch.result_type over tensors and Python scalars: a scalar or a tensor without dimensions only
// decides when its category (boolean < integral < floating) is above the others'.
Result<DType> result_type(const LoweringContext& context, const std::vector<Arg>& operands);

}  // namespace ke::ir
