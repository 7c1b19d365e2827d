// SPDX-License-Identifier: Apache-2.0
#include "llm/prices.hpp"

#include <cmath>

#include "base/json.hpp"
#include "os/file_system.hpp"

namespace ke::llm {

double Price::cost_usd(const Usage& usage) const {
  const auto plain =
      usage.input_tokens - usage.cached_input_tokens - usage.cache_write_tokens;
  return (static_cast<double>(plain) * input +
          static_cast<double>(usage.cached_input_tokens) * cached_input +
          static_cast<double>(usage.cache_write_tokens) * cache_write +
          static_cast<double>(usage.output_tokens) * output) /
         1e6;
}

Result<PriceTable> PriceTable::load(const std::filesystem::path& path) {
  const std::string text = TRY(os::read_file(path, 1_MiB));
  const Json json = TRY(parse_json(text).context("the price table " + path.string()));
  return decode(json).context("the price table " + path.string());
}

Result<PriceTable> PriceTable::decode(const Json& json) {
  Fields fields = TRY(Fields::of(json, "it"));
  const Json* models = fields.find("models");
  TRY(fields.finish());
  if (models == nullptr || !models->is_object()) {
    return Error{Errc::invalid, "it lacks the object 'models'"};
  }
  PriceTable table;
  for (auto entry = models->begin(); entry != models->end(); ++entry) {
    Fields of = TRY(Fields::of(*entry, fmt::format("the price of {}", entry.key())));
    Price price;
    price.input = TRY(of.get<double>("input"));
    price.output = TRY(of.get<double>("output"));
    price.cached_input = TRY(of.get_or<double>("cached_input", price.input));
    price.cache_write = TRY(of.get_or<double>("cache_write", price.input));
    TRY(of.finish());
    for (const double each : {price.input, price.output, price.cached_input, price.cache_write}) {
      if (!std::isfinite(each) || each < 0) {
        return Error{Errc::invalid, fmt::format("the price of {} is negative", entry.key())};
      }
    }
    table.models_[entry.key()] = price;
  }
  return table;
}

std::optional<Price> PriceTable::find(std::string_view provider_id) const {
  std::optional<Price> best;
  size_t best_length = 0;
  for (const auto& [name, price] : models_) {
    if (name == provider_id) return price;
    const std::string_view prefix = std::string_view(name).substr(0, name.size() - 1);
    if (name.ends_with('*') && provider_id.starts_with(prefix) && name.size() > best_length) {
      best = price;
      best_length = name.size();
    }
  }
  return best;
}

}  // namespace ke::llm
