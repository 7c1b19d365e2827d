// SPDX-License-Identifier: Apache-2.0
//
// What models cost. Prices change and differ by contract, so there is no table of ours; the user's
// file says them, in US dollars per million tokens:
//
//   {"models": {"openai:NAME": {"input": 2.0, "cached_input": 0.5, "output": 8.0},
//               "anthropic:NAME*": {"input": 3.0, "cached_input": 0.3, "cache_write": 3.75,
//                                   "output": 15.0}}}
//
// A name that ends in '*' stands for all that begin so; the longest that fits counts. cached_input
// and cache_write are the input's price when absent.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_fwd.hpp"
#include "base/result.hpp"
#include "llm/provider.hpp"

namespace ke::llm {

struct Price {
  double input = 0, cached_input = 0, cache_write = 0, output = 0;  // USD per million tokens
  double cost_usd(const Usage& usage) const;
};

class PriceTable {
 public:
  PriceTable() = default;
  static Result<PriceTable> load(const std::filesystem::path& path);
  static Result<PriceTable> decode(const Json& json);

  std::optional<Price> find(std::string_view provider_id) const;

 private:
  std::map<std::string, Price> models_;
};

}  // namespace ke::llm
