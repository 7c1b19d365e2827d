// SPDX-License-Identifier: Apache-2.0
//
// 256-bit content digests (SHA-256, FIPS 180-4): equal programs, sources and plans meet by digest.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ke {

struct Digest {
  std::array<uint8_t, 32> bytes{};
  auto operator<=>(const Digest&) const = default;
  std::string hex() const;        // 64 lower-case characters
  std::string short_hex() const;  // the first 12, for people
};

Digest digest_of(std::string_view text);

// Reads hex(); nothing when it is not exactly that.
std::optional<Digest> parse_digest(std::string_view hex);

}  // namespace ke
