// SPDX-License-Identifier: Apache-2.0
#include "app/embeddings.hpp"

#include "base/json.hpp"
#include "domain/limits.hpp"
#include "os/random.hpp"

namespace ke::app {
namespace {

constexpr const char* kDotEnvFile = ".env";  // of the folder that the command runs in

class EmbedderVectors final : public knowledge::Vectorizer {
 public:
  EmbedderVectors(std::unique_ptr<llm::Embedder> embedder, EventSink& events)
      : embedder_(std::move(embedder)), events_(events) {}

  std::optional<knowledge::Vectors> vectors(const std::vector<std::string>& texts) override {
    if (dead_) return std::nullopt;
    llm::VectorsOrFailure made = embedder_->embed(texts, {});
    if (made) return std::move(*made);
    dead_ = true;
    events_.emit("stage", {{"what", "searching by words alone, without embeddings: " +
                                        made.error().message}});
    return std::nullopt;
  }

 private:
  std::unique_ptr<llm::Embedder> embedder_;
  EventSink& events_;
  bool dead_ = false;
};

// With all that an embedder refers to.
class StandaloneVectors final : public knowledge::Vectorizer {
 public:
  static Result<std::unique_ptr<knowledge::Vectorizer>> open(
      const std::string& name, const std::filesystem::path& workspace, EventSink& events) {
    auto vectors = std::make_unique<StandaloneVectors>();
    vectors->environment_ = TRY(llm::Environment::load(kDotEnvFile));
    vectors->http_ = TRY(os::make_http_client(os::HttpSettings::from_environment()));
    const llm::ProviderContext context{vectors->clock_,  *vectors->http_, vectors->environment_,
                                       vectors->limits_, events,          Rng(os::random_seed())};
    auto embedder = llm::make_embedder(TRY(llm::open_embedding_transport(name, context)));
    vectors->inner_ = vectorizer_of(std::move(embedder), workspace, events);
    return std::unique_ptr<knowledge::Vectorizer>(std::move(vectors));
  }

  std::optional<knowledge::Vectors> vectors(const std::vector<std::string>& texts) override {
    return inner_->vectors(texts);
  }

 private:
  os::SystemClock clock_;
  Limits limits_;
  llm::Environment environment_;
  std::unique_ptr<os::HttpClient> http_;
  std::unique_ptr<knowledge::Vectorizer> inner_;  // last: it refers to what stands above
};

}  // namespace

std::unique_ptr<knowledge::Vectorizer> vectorizer_of(std::unique_ptr<llm::Embedder> embedder,
                                                     const std::filesystem::path& workspace,
                                                     EventSink& events) {
  const std::filesystem::path folder = workspace / "cache" / "embeddings";
  return std::make_unique<EmbedderVectors>(llm::with_cache(std::move(embedder), folder, events),
                                           events);
}

Result<std::unique_ptr<knowledge::Vectorizer>> open_vectorizer(
    const std::string& name, const std::filesystem::path& workspace, EventSink& events) {
  if (name.empty()) return std::unique_ptr<knowledge::Vectorizer>();
  return StandaloneVectors::open(name, workspace, events);
}

}  // namespace ke::app
