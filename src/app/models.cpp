// SPDX-License-Identifier: Apache-2.0
#include "app/models.hpp"

#include <fmt/format.h>

#include "app/embeddings.hpp"
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

// No price: a local model, which a budget in USD cannot count.
Result<std::optional<llm::Price>> price_of(const llm::PriceTable& prices, const std::string& id,
                                           const ModelOptions& options) {
  const std::optional<llm::Price> price = prices.find(id);
  if (options.usd_max && !price) {
    return Error{Errc::invalid, fmt::format("a budget in USD needs the price of {}; name a file "
                                            "that holds it with --prices",
                                            id)};
  }
  return price;
}

}  // namespace

ModelSet::ModelSet(const ModelOptions& options, const ModelSpending& spent)
    : budget_(limits_of(options), spending_of(spent)) {}

void ModelSet::draw_on(std::unique_ptr<GroundSource> ground) {
  ground_ = std::move(ground);
  tasks_ = prompted_tasks({.ground = ground_.get()});
}

std::unique_ptr<knowledge::Vectorizer> ModelSet::take_vectorizer(
    const std::filesystem::path& workspace) {
  if (!embedder_) return nullptr;
  return vectorizer_of(std::move(embedder_), workspace, events_);
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
    const auto price = TRY(price_of(prices, provider->id(), options));
    models.push_back({llm::with_budget(std::move(provider), set->budget_, price), price});
  }
  if (!options.embeddings.empty()) {
    auto transport = TRY(llm::open_embedding_transport(options.embeddings, context));
    const auto price = TRY(price_of(prices, transport->id(), options));
    set->embedder_ = llm::make_embedder(
        llm::with_budget(std::move(transport), set->budget_, price, false));
  }
  set->asker_ = std::make_unique<Asker>(std::move(models), options.calls, set->clock_,
                                        set->events_);
  return set;
}

}  // namespace ke::app
