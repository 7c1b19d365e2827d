// SPDX-License-Identifier: Apache-2.0
//
// Sizes and JSON form of tensor specifications.
#include "domain/problem.hpp"

#include "base/json.hpp"

namespace ke {

int64_t TensorSpec::elements() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

int64_t TensorSpec::bytes() const { return elements() * ir::bytes_of(dtype); }

int64_t Problem::input_bytes() const {
  int64_t sum = 0;
  for (const TensorSpec& spec : inputs) sum += spec.bytes();
  return sum;
}

int64_t Problem::output_bytes() const {
  int64_t sum = 0;
  for (const TensorSpec& spec : outputs) sum += spec.bytes();
  return sum;
}

Json encode(const TensorSpec& spec) {
  return Json{{"name", spec.name},
              {"dtype", enum_name(spec.dtype)},
              {"shape", spec.shape},
              {"strides", spec.strides},
              {"kind", enum_name(spec.kind)}};
}

Result<TensorSpec> decode_tensor_spec(const Json& json) {
  Fields fields = TRY(Fields::of(json, "a tensor specification"));
  TensorSpec spec;
  spec.name = TRY(fields.get<std::string>("name"));
  const std::string dtype = TRY(fields.get<std::string>("dtype"));
  const std::string kind = TRY(fields.get<std::string>("kind"));
  spec.shape = TRY(fields.get<std::vector<int64_t>>("shape"));
  spec.strides = TRY(fields.get<std::vector<int64_t>>("strides"));
  TRY(fields.finish());
  const std::optional<ir::DType> parsed_dtype = parse_enum<ir::DType>(dtype);
  if (!parsed_dtype) return Error{Errc::invalid, fmt::format("there is no dtype '{}'", dtype)};
  const std::optional<ir::InputKind> parsed_kind = parse_enum<ir::InputKind>(kind);
  if (!parsed_kind) return Error{Errc::invalid, fmt::format("there is no input kind '{}'", kind)};
  if (spec.shape.size() != spec.strides.size()) {
    return Error{Errc::invalid, fmt::format("'{}' has {} extents but {} strides", spec.name,
                                            spec.shape.size(), spec.strides.size())};
  }
  // The count of elements must fit: every later size is a product of these.
  int64_t count = bytes_of(*parsed_dtype);
  for (int64_t extent : spec.shape) {
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count)) {
      return Error{Errc::invalid, fmt::format("'{}' has an impossible shape", spec.name)};
    }
  }
  spec.dtype = *parsed_dtype;
  spec.kind = *parsed_kind;
  return spec;
}

Json encode(const Draw& draw) {
  return Json{{"method", draw.method}, {"parameters", draw.parameters}};
}

Result<Draw> decode_draw(const Json& json) {
  Fields fields = TRY(Fields::of(json, "a random draw"));
  Draw draw;
  draw.method = TRY(fields.get<std::string>("method"));
  draw.parameters = TRY(fields.get<std::vector<double>>("parameters"));
  TRY(fields.finish());
  return draw;
}

}  // namespace ke
