// SPDX-License-Identifier: Apache-2.0
//
// Sizes and JSON form of tensor specifications.
#include "domain/problem.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json.hpp"

namespace ke {
namespace {

// What a case may not change of a tensor.
bool same_kind(const TensorSpec& a, const TensorSpec& b) {
  return a.name == b.name && a.dtype == b.dtype && a.kind == b.kind;
}

bool same_shape(const TensorSpec& a, const TensorSpec& b) { return a.shape == b.shape; }

// Why `other` is no shape case beside `first`; nothing when it is.
std::optional<std::string> difference(const Problem& first, const Problem& other) {
  if (!std::ranges::equal(first.inputs, other.inputs, same_kind)) {
    return "other inputs than case 0, or inputs of other types";
  }
  for (size_t i = 0; i < first.inputs.size(); ++i) {
    const TensorSpec& spec = first.inputs[i];
    if (spec.kind != ir::InputKind::argument && spec.shape != other.inputs[i].shape) {
      return fmt::format("another shape of '{}', which is no argument", spec.name);
    }
  }
  const auto same_dtype = [](const TensorSpec& a, const TensorSpec& b) {
    return a.dtype == b.dtype;
  };
  if (!std::ranges::equal(first.outputs, other.outputs, same_dtype)) {
    return "another number of outputs than case 0, or outputs of other types";
  }
  return std::nullopt;
}

}  // namespace

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

std::string shapes_of(const Problem& problem) {
  std::string text;
  for (const TensorSpec& spec : problem.inputs) {
    if (spec.kind != ir::InputKind::argument) continue;
    text += fmt::format("{}{} [{}]", text.empty() ? "" : ", ", spec.name,
                        fmt::join(spec.shape, ", "));
  }
  return text;
}

Result<void> check_cases(std::span<const Problem* const> cases) {
  for (size_t i = 1; i < cases.size(); ++i) {
    const Problem& own = *cases[i];
    if (const auto differs = difference(*cases[0], own)) {
      return Error{Errc::invalid,
                   fmt::format("{}: case {} ({}) has {}; a case may change shapes of arguments "
                               "only",
                               own.path, i, shapes_of(own), *differs)};
    }
    for (size_t before = 0; before < i; ++before) {
      if (!std::ranges::equal(cases[before]->inputs, own.inputs, same_shape)) continue;
      return Error{Errc::invalid,
                   fmt::format("{}: case {} ({}) has the shapes of case {}; remove it from "
                               "get_input_cases(), or give it shapes of its own",
                               own.path, i, shapes_of(own), before)};
    }
  }
  return {};
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

namespace {

template <class T>
Json encode_all(const std::vector<T>& items) {
  Json list = Json::array();
  for (const T& item : items) list.push_back(encode(item));
  return list;
}

Result<std::vector<TensorSpec>> decode_specs(Fields& fields, const char* key) {
  std::vector<TensorSpec> specs;
  const Json list = TRY(fields.get<Json>(key));
  for (const Json& spec : list) {
    specs.push_back(TRY(decode_tensor_spec(spec)));
  }
  return specs;
}

}  // namespace

Json encode(const Problem& problem) {
  return Json{{"name", problem.name},
              {"digest", problem.digest.hex()},
              {"inputs", encode_all(problem.inputs)},
              {"outputs", encode_all(problem.outputs)},
              {"graph", problem.graph ? ir::encode(*problem.graph) : Json(nullptr)},
              {"graph_error", problem.graph_error},
              {"float64_truth", problem.float64_truth},
              {"longest_reduction", problem.longest_reduction},
              {"flops", problem.flops},
              {"spared_flops", problem.spared_flops},
              {"unit_roundoff", problem.unit_roundoff},
              {"libraries", problem.libraries},
              {"determinism", problem.determinism ? Json(enum_name(*problem.determinism)) : Json()},
              {"flags", problem.flags},
              {"draws", encode_all(problem.draws)},
              {"shape_case", problem.shape_case},
              {"case_count", problem.case_count}};
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
  problem.spared_flops = TRY(fields.get<int64_t>("spared_flops"));
  problem.unit_roundoff = TRY(fields.get<double>("unit_roundoff"));
  problem.libraries = TRY(fields.get<std::string>("libraries"));
  const Json determinism = TRY(fields.get<Json>("determinism"));
  if (!determinism.is_null()) {
    const bool text = determinism.is_string();
    problem.determinism =
        text ? parse_enum<Determinism>(determinism.get<std::string>()) : std::nullopt;
    if (!problem.determinism) return Error{Errc::invalid, "the problem's determinism is none"};
  }
  problem.flags = TRY(fields.get<std::vector<std::string>>("flags"));
  const Json draws = TRY(fields.get<Json>("draws"));
  for (const Json& draw : draws) problem.draws.push_back(TRY(decode_draw(draw)));
  problem.shape_case = TRY(fields.get<int32_t>("shape_case"));
  problem.case_count = TRY(fields.get<int32_t>("case_count"));
  TRY(fields.finish());
  return problem;
}

}  // namespace ke
