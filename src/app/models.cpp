// SPDX-License-Identifier: Apache-2.0
#include "app/models.hpp"

#include <fmt/format.h>

#include "os/random.hpp"

namespace ke::app {
namespace {

constexpr const char* kDotEnv = ".env";  // of the folder that the command runs in

llm::BudgetLimits limits_of(const ModelOptions& options) {
  return {.calls = options.calls_max,
          .tokens = options.tokens_max,
          .usd = options.usd_max,
          .time = {}};
}

llm::Spending spending_of(const ModelSpending& spent) {
  return {spent.calls, spent.tokens, spent.usd, Nanoseconds{0}};
}

}  // namespace

ModelSet::ModelSet(const ModelOptions& options, const ModelSpending& spent)
    : budget_(limits_of(options), spending_of(spent)) {}

void ModelSet::draw_on(std::unique_ptr<GroundSource> ground) {
  ground_ = std::move(ground);
  tasks_ = prompted_tasks({.ground = ground_.get()});
}

Result<std::unique_ptr<ModelSet>> ModelSet::open(const ModelOptions& options,
                                                 const ModelSpending& spent) {
  std::unique_ptr<ModelSet> set(new ModelSet(options, spent));
  set->environment_ = TRY(llm::Environment::load(kDotEnv));
  set->http_ = TRY(os::make_http_client(os::HttpSettings::from_environment()));
  llm::PriceTable prices;
  if (!options.prices.empty()) {
    prices = TRY(llm::PriceTable::load(options.prices).context("the price table"));
  }
  const llm::ProviderContext context{set->clock_,  *set->http_,  set->environment_,
                                     set->limits_, set->events_, Rng(os::random_seed())};
  std::vector<AskedModel> models;
  for (const std::string& name : options.names) {
    std::unique_ptr<llm::Provider> provider = TRY(llm::open_provider(name, context));
    const std::optional<llm::Price> price = prices.find(provider->id());
    if (options.usd_max && !price) {
      return Error{Errc::invalid,
                   fmt::format("a budget in USD needs the price of {}; name a file that holds it "
                               "with --prices",
                               name)};
    }
    models.push_back({llm::with_budget(std::move(provider), set->budget_, price), price});
  }
  set->asker_ = std::make_unique<Asker>(std::move(models), options.calls, set->clock_,
                                        set->events_);
  return set;
}

}  // namespace ke::app
