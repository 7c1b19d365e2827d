// SPDX-License-Identifier: Apache-2.0
#include "llm/secret.hpp"

#include <openssl/crypto.h>

namespace ke::llm {

namespace {

// Placeholders for servers that want some key ("none", "EMPTY") are words, not secrets: hiding them
// would only garble texts.
constexpr size_t kLengthMin = 8;

}  // namespace

Secret::~Secret() { OPENSSL_cleanse(value_.data(), value_.size()); }

std::string Secret::redact(std::string_view text) const {
  std::string result(text);
  if (value_.size() < kLengthMin) return result;
  static constexpr std::string_view kHidden = "[key]";
  for (size_t at = result.find(value_); at != std::string::npos; at = result.find(value_, at)) {
    result.replace(at, value_.size(), kHidden);
    at += kHidden.size();
  }
  return result;
}

}  // namespace ke::llm
