// SPDX-License-Identifier: Apache-2.0
//
// Result<T>: the only way a folder reports that the *system* failed. A failed candidate is data
// (see domain/evaluation.hpp), never an Error. Each layer may add one noun phrase with context(),
// so the rendered chain reads as a sentence.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace ke {

// A code exists only because some caller acts on it; everything else is the message.
enum class Errc {
  invalid,      // the user's input is wrong: one sentence, exit code 2
  not_found,    // something named does not exist
  conflict,     // locked, already there, newer version
  timed_out,    // a limit on time was passed
  unavailable,  // a tool or machine capability is missing
  refused,      // policy forbids it
  internal,     // anything else
};

struct Error {
  Errc code = Errc::internal;
  std::string message;
  std::vector<std::string> context = {};  // innermost first

  // "context: context: message", outermost first.
  std::string to_string() const;
};

template <class T>
struct [[nodiscard]] Result : tl::expected<T, Error> {
  using tl::expected<T, Error>::expected;
  Result(Error error) : tl::expected<T, Error>(tl::make_unexpected(std::move(error))) {}

  Result context(std::string noun_phrase) && {
    if (!this->has_value()) this->error().context.push_back(std::move(noun_phrase));
    return std::move(*this);
  }
};

template <>
struct [[nodiscard]] Result<void> : tl::expected<void, Error> {
  using tl::expected<void, Error>::expected;
  Result(Error error) : tl::expected<void, Error>(tl::make_unexpected(std::move(error))) {}

  Result context(std::string noun_phrase) && {
    if (!has_value()) error().context.push_back(std::move(noun_phrase));
    return std::move(*this);
  }
};

namespace detail {
template <class T>
T take(Result<T>&& result) {
  return std::move(*result);
}
inline void take(Result<void>&&) {}
}  // namespace detail

}  // namespace ke

// TRY(expr): the value of expr, or return its error from the enclosing function.
#define KE_CONCAT_INNER(a, b) a##b
#define KE_CONCAT(a, b) KE_CONCAT_INNER(a, b)
#define KE_TRY_IMPL(name, expr)                                       \
  __extension__({                                                     \
    auto name = (expr);                                               \
    if (!name.has_value()) return ::ke::Error(std::move(name).error()); \
    ::ke::detail::take(std::move(name));                              \
  })
#define TRY(expr) KE_TRY_IMPL(KE_CONCAT(ke_try_, __COUNTER__), expr)
