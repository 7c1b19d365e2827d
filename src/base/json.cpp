// SPDX-License-Identifier: Apache-2.0
#include "base/json.hpp"

namespace ke {

Result<Json> parse_json(std::string_view text) {
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const nlohmann::json::parse_error& error) {
    return Error{Errc::invalid, fmt::format("not valid JSON near byte {}", error.byte)};
  } catch (const nlohmann::json::exception&) {
    return Error{Errc::invalid, "not valid JSON"};
  }
}

std::string dump_json(const Json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<Fields> Fields::of(const Json& value, std::string_view what) {
  if (!value.is_object()) {
    return Error{Errc::invalid, fmt::format("{} is not a JSON object", what)};
  }
  return Fields(&value, std::string(what));
}

const Json* Fields::find(const char* key) {
  asked_.insert(key);
  const auto found = value_->find(key);
  return found == value_->end() ? nullptr : &*found;
}

Result<void> Fields::finish() const {
  for (auto it = value_->begin(); it != value_->end(); ++it) {
    if (!asked_.contains(it.key())) {
      return Error{Errc::invalid, fmt::format("{} has an unknown field '{}'", what_, it.key())};
    }
  }
  return {};
}

}  // namespace ke
