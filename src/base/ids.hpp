// SPDX-License-Identifier: Apache-2.0
//
// Strong integer ids: mixing up a node and an evaluation is a compile error.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

namespace ke {

template <class Tag>
struct Id {
  int64_t value = 0;  // 0 is "none"; stores hand out ids from 1
  auto operator<=>(const Id&) const = default;
  explicit operator bool() const { return value != 0; }
};

using ProblemId = Id<struct ProblemTag>;
using RunId = Id<struct RunTag>;
using NodeId = Id<struct NodeTag>;
using EvaluationId = Id<struct EvaluationTag>;
using PromptId = Id<struct PromptTag>;
using AnswerId = Id<struct AnswerTag>;

}  // namespace ke

template <class Tag>
struct std::hash<ke::Id<Tag>> {
  size_t operator()(ke::Id<Tag> id) const noexcept { return std::hash<int64_t>{}(id.value); }
};
