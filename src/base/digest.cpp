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

Digest digest_of(std::string_view text) {
  Digest digest;
  unsigned int length = 0;
  const int ok = EVP_Digest(text.data(), text.size(), digest.bytes.data(), &length, EVP_sha256(),
                            nullptr);
  KE_ASSERT(ok == 1 && length == digest.bytes.size());
  return digest;
}

}  // namespace ke
