// SPDX-License-Identifier: Apache-2.0
//
// What is found out about a node before a kernel is asked for, by one of two sub-agents each:
// *context memory* diagnoses it, *deep search* chooses what to read. Both have a version without a
// model (diagnose() and GroundSource::documents()), which stands in wherever a model's is missing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.hpp"
#include "base/json_fwd.hpp"
#include "base/result.hpp"

namespace ke {

// Who of a conversation is asked, in the order of asking.
enum class Agent : uint8_t { context_memory, deep_search, proposal };

// What bounds a node, how that is known, what was tried, and what to try.
struct Diagnosis {
  std::string bound;                   // memory, compute, latency, overhead, correctness, unknown
  std::vector<std::string> evidence;   // sentences with figures
  std::vector<std::string> tried;      // what the history did and what came of it
  std::vector<std::string> directives; // what to do next, most promising first
  bool operator==(const Diagnosis&) const = default;
};
Json encode(const Diagnosis& diagnosis);
Result<Diagnosis> decode_diagnosis(const Json& json);

inline constexpr std::array<std::string_view, 6> kBounds{"memory",   "compute",     "latency",
                                                         "overhead", "correctness", "unknown"};

struct ChosenDocument {
  std::string path;
  std::string reason;
  bool operator==(const ChosenDocument&) const = default;
};

// What models have said so far; absent where the version without a model stands in.
struct Advice {
  std::optional<Diagnosis> diagnosis;
  std::optional<std::vector<ChosenDocument>> documents;  // in the order in which they are wanted
  std::vector<std::string> shown;  // paths that deep search has seen, and may choose
};

}  // namespace ke

template <>
inline constexpr std::array<std::string_view, 3> ke::kEnumNames<ke::Agent>{
    "context_memory", "deep_search", "proposal"};
