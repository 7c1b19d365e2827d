// SPDX-License-Identifier: Apache-2.0
//
// Settings and keys of the providers: the process's environment, then a `.env` file (NAME=value
// lines). A name that ends in _KEY, _TOKEN or _SECRET comes out as a Secret only.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "llm/secret.hpp"

namespace ke::llm {

class Environment {
 public:
  // This process's variables over those of the file. An absent file is no error; a broken line is
  // Errc::invalid and is named by its number, never quoted.
  static Result<Environment> load(const std::filesystem::path& dotenv);
  explicit Environment(std::map<std::string, std::string> values = {})
      : values_(std::move(values)) {}

  std::optional<std::string> text(const std::string& name) const;    // empty counts as absent
  std::optional<Secret> secret(const std::string& name) const;       // the same
  std::string redact(std::string_view text) const;                   // of every secret

  // What a command of the user's may see: where programs, home and certificates are, the language
  // and the way to the world; nothing else, and no key.
  std::vector<std::string> for_child() const;

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace ke::llm
