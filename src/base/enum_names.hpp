// SPDX-License-Identifier: Apache-2.0
//
// Enums whose values are spelled like their text. Specialise kEnumNames<E> with one name a value,
// in order; to_string and parse_enum then work, and the static_assert beside the enum keeps count.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace ke {

template <class E>
inline constexpr std::array<std::string_view, 0> kEnumNames{};

template <class E>
constexpr std::string_view enum_name(E value) {
  return kEnumNames<E>[static_cast<size_t>(value)];
}

template <class E>
constexpr std::optional<E> parse_enum(std::string_view text) {
  for (size_t i = 0; i < kEnumNames<E>.size(); ++i) {
    if (kEnumNames<E>[i] == text) return static_cast<E>(i);
  }
  return std::nullopt;
}

}  // namespace ke
