// SPDX-License-Identifier: Apache-2.0
#include "base/digest.hpp"

#include <openssl/evp.h>

#include "base/assert.hpp"

namespace ke {

std::string Digest::hex() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(64);
  for (const uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string Digest::short_hex() const { return hex().substr(0, 12); }

std::optional<Digest> parse_digest(std::string_view hex) {
  Digest digest;
  const auto nibble = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  if (hex.size() != 2 * digest.bytes.size()) return std::nullopt;
  for (size_t i = 0; i < digest.bytes.size(); ++i) {
    const int high = nibble(hex[2 * i]), low = nibble(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest.bytes[i] = static_cast<uint8_t>(high * 16 + low);
  }
  return digest;
}

Digest digest_of(std::string_view text) {
  Digest digest;
  unsigned int length = 0;
  const int ok = EVP_Digest(text.data(), text.size(), digest.bytes.data(), &length, EVP_sha256(),
                            nullptr);
  KE_ASSERT(ok == 1 && length == digest.bytes.size());
  return digest;
}

}  // namespace ke
