// SPDX-License-Identifier: Apache-2.0
//
// A key. It has no way to be printed, formatted, compared or put into JSON; reveal() is called
// where a request header is made and nowhere else. Its memory is wiped when it goes.
#pragma once

#include <string>
#include <string_view>

namespace ke::llm {

class Secret {
 public:
  explicit Secret(std::string value) : value_(std::move(value)) {}
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = delete;
  ~Secret();

  std::string_view reveal() const { return value_; }

  // `text` with every occurrence of the key replaced: for error texts that others wrote.
  std::string redact(std::string_view text) const;

 private:
  std::string value_;
};

}  // namespace ke::llm
