// SPDX-License-Identifier: Apache-2.0
//
// Reads batches and compares results with them.
#include "batch.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/json.hpp"
#include "ir/scalar.hpp"

namespace ke::fuzz {
namespace {

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{Errc::not_found, path + " can't be read"};
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Result<ir::TensorBytes> bytes_at(const Json& json, const std::string& blob) {
  Fields fields = TRY(Fields::of(json, "a place in the batch"));
  const auto offset = TRY(fields.get<uint64_t>("offset"));
  const auto count = TRY(fields.get<uint64_t>("bytes"));
  TRY(fields.finish());
  if (offset > blob.size() || count > blob.size() - offset) {
    return Error{Errc::invalid, "the batch's data is too short"};
  }
  ir::TensorBytes bytes(count);
  if (count > 0) std::memcpy(bytes.data(), blob.data() + offset, count);
  return bytes;
}

std::vector<double> doubles(const ir::TensorBytes& bytes) {
  std::vector<double> values(bytes.size() / sizeof(double));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(double));
  return values;
}

Result<Case> read_case(const Json& json, const std::string& blob) {
  Fields fields = TRY(Fields::of(json, "a case"));
  Case read;
  read.seed = TRY(fields.get<int64_t>("seed"));
  read.source = TRY(fields.get<std::string>("source"));
  read.graph = TRY(ir::graph_from_json(TRY(fields.get<Json>("graph"))));
  for (const Json& place : TRY(fields.get<Json>("inputs"))) {
    read.inputs.push_back(TRY(bytes_at(place, blob)));
  }
  size_t position = 0;
  for (const Json& output : TRY(fields.get<Json>("outputs"))) {
    Fields entry = TRY(Fields::of(output, "an output"));
    if (position >= read.graph.outputs.size()) return Error{Errc::invalid, "too many outputs"};
    const ir::ValueId id = read.graph.outputs[position++];
    Expected expected{.dtype = read.graph.values[static_cast<size_t>(id.index)].dtype};
    const ir::TensorBytes value = TRY(bytes_at(TRY(entry.get<Json>("value")), blob));
    if (ir::is_floating(expected.dtype)) {
      expected.reals = doubles(value);
      expected.tolerance = doubles(TRY(bytes_at(TRY(entry.get<Json>("tolerance")), blob)));
    } else {
      expected.exact = value;
    }
    TRY(entry.finish());
    read.outputs.push_back(std::move(expected));
  }
  TRY(fields.finish());
  return read;
}

double real_at(const ir::TensorBytes& bytes, ir::DType dtype, size_t i) {
  const std::byte* at = bytes.data() + i * static_cast<size_t>(ir::bytes_of(dtype));
  if (dtype == ir::DType::float64) {
    double value = 0;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  if (dtype == ir::DType::float32) {
    float value = 0;
    std::memcpy(&value, at, sizeof value);
    return static_cast<double>(value);
  }
  uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return static_cast<double>(dtype == ir::DType::float16 ? ir::half_value(bits)
                                                         : ir::bfloat_value(bits));
}

bool is_right(double got, double want, double tolerance) {
  if (std::isinf(tolerance)) return true;
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  return std::abs(got - want) <= tolerance;
}

std::optional<std::string> compare_one(const Expected& expected, const ir::TensorBytes& got) {
  const auto width = static_cast<size_t>(ir::bytes_of(expected.dtype));
  if (!ir::is_floating(expected.dtype)) {
    if (got.size() != expected.exact.size()) return "has a wrong size";
    for (size_t i = 0; i < got.size(); ++i) {
      if (got[i] == expected.exact[i]) continue;
      return fmt::format("element {} ({}): byte {} is {:#x}, expected {:#x}", i / width,
                         enum_name(expected.dtype), i % width, static_cast<int>(got[i]),
                         static_cast<int>(expected.exact[i]));
    }
    return std::nullopt;
  }
  if (got.size() != expected.reals.size() * width) return "has a wrong size";
  for (size_t i = 0; i < expected.reals.size(); ++i) {
    const double value = real_at(got, expected.dtype, i);
    if (is_right(value, expected.reals[i], expected.tolerance[i])) continue;
    return fmt::format("element {} ({}): {:.9g}, expected {:.9g} within {:.3g}", i,
                       enum_name(expected.dtype), value, expected.reals[i], expected.tolerance[i]);
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<Case>> read_batch(const std::string& stem) {
  const std::string blob = TRY(read_file(stem + ".bin"));
  const Json json = TRY(parse_json(TRY(read_file(stem + ".json"))));
  Fields fields = TRY(Fields::of(json, "the batch"));
  std::vector<Case> cases;
  for (const Json& item : TRY(fields.get<Json>("cases"))) {
    cases.push_back(TRY(read_case(item, blob)));
  }
  TRY(fields.finish());
  return cases;
}

std::optional<std::string> compare(const std::vector<Expected>& expected,
                                   const std::vector<ir::TensorBytes>& outputs) {
  if (outputs.size() != expected.size()) return "the number of outputs is wrong";
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::optional<std::string> wrong = compare_one(expected[i], outputs[i]);
    if (wrong) return fmt::format("output {}, {}", i, *wrong);
  }
  return std::nullopt;
}

}  // namespace ke::fuzz
