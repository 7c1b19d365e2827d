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

namespace {

Json encode_specs(const std::vector<TensorSpec>& specs) {
  Json list = Json::array();
  for (const TensorSpec& spec : specs) list.push_back(encode(spec));
  return list;
}

Result<std::vector<TensorSpec>> decode_specs(Fields& fields, const char* key) {
  std::vector<TensorSpec> specs;
  for (const Json& spec : TRY(fields.get<Json>(key))) {
    specs.push_back(TRY(decode_tensor_spec(spec)));
  }
  return specs;
}

}  // namespace

Json encode(const Problem& problem) {
  return Json{{"name", problem.name},
              {"digest", problem.digest.hex()},
              {"inputs", encode_specs(problem.inputs)},
              {"outputs", encode_specs(problem.outputs)},
              {"graph", problem.graph ? ir::encode(*problem.graph) : Json(nullptr)},
              {"graph_error", problem.graph_error},
              {"float64_truth", problem.float64_truth},
              {"longest_reduction", problem.longest_reduction},
              {"flops", problem.flops},
              {"unit_roundoff", problem.unit_roundoff},
              {"flags", problem.flags}};
}

Result<Problem> decode_problem(const Json& json) {
  Fields fields = TRY(Fields::of(json, "the problem"));
  Problem problem;
  problem.name = TRY(fields.get<std::string>("name"));
  const auto digest = parse_digest(TRY(fields.get<std::string>("digest")));
  if (!digest) return Error{Errc::invalid, "the problem's digest is none"};
  problem.digest = *digest;
  problem.inputs = TRY(decode_specs(fields, "inputs"));
  problem.outputs = TRY(decode_specs(fields, "outputs"));
  const Json graph = TRY(fields.get<Json>("graph"));
  if (!graph.is_null()) problem.graph = TRY(ir::graph_from_json(graph));
  problem.graph_error = TRY(fields.get<std::string>("graph_error"));
  problem.float64_truth = TRY(fields.get<bool>("float64_truth"));
  problem.longest_reduction = TRY(fields.get<int64_t>("longest_reduction"));
  problem.flops = TRY(fields.get<int64_t>("flops"));
  problem.unit_roundoff = TRY(fields.get<double>("unit_roundoff"));
  problem.flags = TRY(fields.get<std::vector<std::string>>("flags"));
  TRY(fields.finish());
  return problem;
}

}  // namespace ke
