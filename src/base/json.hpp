// SPDX-License-Identifier: Apache-2.0
//
// The one door to nlohmann-json: parsing never throws out of here, and decoders read fields through
// Fields, which types every access and refuses what it does not know. Include this from .cpp files;
// headers use base/json_fwd.hpp.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/json_fwd.hpp"
#include "base/result.hpp"

namespace ke {

// Parses hostile text. The error names the byte position; it never quotes the whole text.
Result<Json> parse_json(std::string_view text);

// One line, keys in insertion-independent (sorted) order, invalid UTF-8 replaced.
std::string dump_json(const Json& value);

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// Typed access to one object's fields. get<T>() fails with a sentence that names the field;
// finish() fails if the object held a field nobody asked for.
class Fields {
 public:
  static Result<Fields> of(const Json& value, std::string_view what);

  template <class T>
  Result<T> get(const char* key) {
    const Json* found = find(key);
    if (!found) return Error{Errc::invalid, fmt::format("{} lacks the field '{}'", what_, key)};
    return convert<T>(key, *found);
  }
  template <class T>
  Result<T> get_or(const char* key, T fallback) {
    const Json* found = find(key);
    if (!found || found->is_null()) return fallback;
    return convert<T>(key, *found);
  }
  // Nothing when the field is absent or null.
  template <class T>
  Result<std::optional<T>> get_optional(const char* key) {
    const Json* found = find(key);
    if (!found || found->is_null()) return std::optional<T>();
    return std::optional<T>(TRY(convert<T>(key, *found)));
  }
  const Json* find(const char* key);  // null when absent; counts as asked for
  Result<void> finish() const;

 private:
  Fields(const Json* value, std::string what) : value_(value), what_(std::move(what)) {}
  template <class T>
  Result<T> convert(const char* key, const Json& field) {
    try {
      return field.get<T>();
    } catch (const nlohmann::json::exception&) {
      return Error{Errc::invalid, fmt::format("{} has a wrong type in the field '{}'", what_, key)};
    }
  }

  const Json* value_;
  std::string what_;
  std::set<std::string> asked_;
};

}  // namespace ke
