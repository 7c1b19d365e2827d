// SPDX-License-Identifier: Apache-2.0
//
// Typed access to the arguments of one ATen call.
#include "ir/lower/call.hpp"

#include <fmt/format.h>

namespace ke::ir {
namespace {

const Arg kNone{};

// Whether a Python scalar; and its dtype as a PyTorch wrapped number.
std::optional<DType> scalar_dtype(const Arg& arg) {
  if (std::holds_alternative<bool>(arg.data)) return DType::boolean;
  if (std::holds_alternative<int64_t>(arg.data)) return DType::int64;
  if (std::holds_alternative<double>(arg.data)) return DType::float32;  // torch's default dtype
  return std::nullopt;
}

int category(std::optional<DType> dtype) {
  if (!dtype) return -1;
  return *dtype == DType::boolean ? 0 : is_integral(*dtype) ? 1 : 2;
}

std::optional<DType> join(std::optional<DType> a, DType b) { return a ? promote(*a, b) : b; }

// The higher category wins; within one, the operands of more weight decide.
std::optional<DType> prefer(std::optional<DType> heavy, std::optional<DType> light) {
  return category(light) > category(heavy) ? light : heavy;
}

}  // namespace

const Arg& Call::arg(size_t position, std::string_view name) const {
  if (position < node_.args.size()) return node_.args[position];
  for (const NamedArg& kwarg : node_.kwargs) {
    if (kwarg.name == name) return kwarg.value;
  }
  return kNone;
}

Result<ValueId> Call::value(size_t position, std::string_view name) const {
  const auto* id = std::get_if<ValueId>(&arg(position, name).data);
  if (!id) return wrong(fmt::format("'{}' is not a tensor", name));
  return *id;
}

Result<std::vector<ValueId>> Call::values(size_t position, std::string_view name) const {
  const auto* items = std::get_if<std::vector<Arg>>(&arg(position, name).data);
  if (!items) return wrong(fmt::format("'{}' is not a list of tensors", name));
  std::vector<ValueId> result;
  for (const Arg& item : *items) {
    const auto* id = std::get_if<ValueId>(&item.data);
    if (!id) return wrong(fmt::format("'{}' is not a list of tensors", name));
    result.push_back(*id);
  }
  return result;
}

Result<int64_t> Call::integer(size_t position, std::string_view name,
                              std::optional<int64_t> fallback) const {
  const Arg& found = arg(position, name);
  if (const auto* number = std::get_if<int64_t>(&found.data)) return *number;
  if (found.is_none() && fallback) return *fallback;
  return wrong(fmt::format("'{}' is not an integer", name));
}

Result<double> Call::number(size_t position, std::string_view name,
                            std::optional<double> fallback) const {
  const Arg& found = arg(position, name);
  if (const auto* number = std::get_if<double>(&found.data)) return *number;
  if (const auto* number = std::get_if<int64_t>(&found.data)) return static_cast<double>(*number);
  if (const auto* flag = std::get_if<bool>(&found.data)) return *flag ? 1.0 : 0.0;
  if (found.is_none() && fallback) return *fallback;
  return wrong(fmt::format("'{}' is not a number", name));
}

Result<bool> Call::flag(size_t position, std::string_view name, bool fallback) const {
  const Arg& found = arg(position, name);
  if (const auto* flag = std::get_if<bool>(&found.data)) return *flag;
  if (const auto* number = std::get_if<int64_t>(&found.data)) return *number != 0;
  if (found.is_none()) return fallback;
  return wrong(fmt::format("'{}' is not a boolean", name));
}

Result<std::string> Call::text(size_t position, std::string_view name, std::string fallback) const {
  const Arg& found = arg(position, name);
  if (const auto* text = std::get_if<std::string>(&found.data)) return *text;
  if (found.is_none()) return fallback;
  return wrong(fmt::format("'{}' is not text", name));
}

Result<std::vector<int64_t>> Call::integers(size_t position, std::string_view name) const {
  const Arg& found = arg(position, name);
  if (found.is_none()) return std::vector<int64_t>{};
  if (const auto* number = std::get_if<int64_t>(&found.data)) return std::vector<int64_t>{*number};
  const auto* items = std::get_if<std::vector<Arg>>(&found.data);
  if (!items) return wrong(fmt::format("'{}' is not a list of integers", name));
  std::vector<int64_t> result;
  for (const Arg& item : *items) {
    const auto* number = std::get_if<int64_t>(&item.data);
    if (!number) return wrong(fmt::format("'{}' is not a list of integers", name));
    result.push_back(*number);
  }
  return result;
}

Result<ExprPtr> Call::operand(size_t position, std::string_view name, DType dtype,
                              const Shape& shape) const {
  const auto* id = std::get_if<ValueId>(&arg(position, name).data);
  if (!id) return scalar(position, name, dtype);
  return cast(dtype, TRY(context_.read_broadcast(*id, shape)));
}

Result<ExprPtr> Call::scalar(size_t position, std::string_view name, DType dtype) const {
  const Arg& found = arg(position, name);
  if (const auto* number = std::get_if<int64_t>(&found.data)) {
    return cast(dtype, constant_int(DType::int64, *number));
  }
  return ke::ir::number(dtype, TRY(this->number(position, name)));
}

Result<ValueId> Call::result(size_t position) const {
  if (position >= node_.results.size()) return wrong("it has too few results");
  return node_.results[position];
}

Result<const Value*> Call::result_value(size_t position) const {
  return &context_.value(TRY(result(position)));
}

Error Call::wrong(std::string_view what) const {
  return Error{Errc::invalid, fmt::format("{}: {}", node_.op, what)};
}

Error Call::unavailable(std::string_view what) const {
  return Error{Errc::unavailable, fmt::format("{}: {}", node_.op, what)};
}

Result<DType> result_type(const LoweringContext& context, const std::vector<Arg>& operands) {
  std::optional<DType> dimensioned, zero_dim, scalars;
  for (const Arg& arg : operands) {
    if (const auto* id = std::get_if<ValueId>(&arg.data)) {
      const Value& value = context.value(*id);
      std::optional<DType>& group = value.shape.empty() ? zero_dim : dimensioned;
      group = join(group, value.dtype);
    } else if (const std::optional<DType> dtype = scalar_dtype(arg)) {
      scalars = join(scalars, *dtype);
    }
  }
  const std::optional<DType> result = prefer(prefer(dimensioned, zero_dim), scalars);
  if (!result) return Error{Errc::invalid, "an operation has no operand that gives it a dtype"};
  return *result;
}

}  // namespace ke::ir
