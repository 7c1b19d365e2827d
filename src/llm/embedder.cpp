// SPDX-License-Identifier: Apache-2.0
#include "llm/embedder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/assert.hpp"
#include "base/json.hpp"
#include "os/file_system.hpp"

namespace ke::llm {
namespace {

constexpr int64_t kVectorBytesMax = 1 << 20;

class BatchingEmbedder final : public Embedder {
 public:
  explicit BatchingEmbedder(std::unique_ptr<Provider> transport)
      : transport_(std::move(transport)) {}

  std::string id() const override { return transport_->id(); }

  VectorsOrFailure embed(const std::vector<std::string>& texts, std::stop_token stop) override {
    Vectors all;
    for (size_t first = 0; first < texts.size(); first += kTextsPerCall) {
      const size_t end = std::min(texts.size(), first + kTextsPerCall);
      CompletionRequest request{.stable = "", .messages = {}, .output_tokens_max = 0,
                                .temperature = {}};
      for (size_t i = first; i < end; ++i) request.messages.push_back({Role::user, texts[i]});
      const Outcome outcome = transport_->complete(request, {}, stop);
      if (!outcome) return outcome.error();
      if (outcome->finish == FinishReason::stopped_by_us) {
        return Failure{FailureKind::unreachable, id() + ": it was stopped"};
      }
      auto vectors = parse_json(outcome->text)->get<Vectors>();  // written by the transport
      for (auto& vector : vectors) all.push_back(std::move(vector));
      if (all.back().size() != all.front().size()) {
        return Failure{FailureKind::malformed,
                       fmt::format("{}: vectors have {} numbers and then {}", id(),
                                   all.front().size(), all.back().size())};
      }
    }
    return all;
  }

 private:
  std::unique_ptr<Provider> transport_;
};

class CachedEmbedder final : public Embedder {
 public:
  CachedEmbedder(std::unique_ptr<Embedder> inner, std::filesystem::path folder, EventSink& events)
      : inner_(std::move(inner)), folder_(std::move(folder)), events_(events) {}

  std::string id() const override { return inner_->id(); }

  // What came before a failure is kept: a batch is asked for once.
  VectorsOrFailure embed(const std::vector<std::string>& texts, std::stop_token stop) override {
    Vectors vectors(texts.size());
    std::vector<size_t> missing;
    for (size_t i = 0; i < texts.size(); ++i) {
      vectors[i] = read(texts[i]);
      if (vectors[i].empty()) missing.push_back(i);
    }
    for (size_t first = 0; first < missing.size(); first += kTextsPerCall) {
      const size_t end = std::min(missing.size(), first + kTextsPerCall);
      std::vector<std::string> batch;
      for (size_t i = first; i < end; ++i) batch.push_back(texts[missing[i]]);
      VectorsOrFailure made = inner_->embed(batch, stop);
      if (!made) return made;
      for (size_t i = first; i < end; ++i) {
        vectors[missing[i]] = std::move((*made)[i - first]);
        keep(texts[missing[i]], vectors[missing[i]]);
      }
    }
    for (const auto& vector : vectors) {
      if (vector.size() == vectors.front().size()) continue;
      return Failure{FailureKind::malformed,
                     fmt::format("{}: kept vectors have another length than new ones; delete {}",
                                 id(), folder_.string())};
    }
    return vectors;
  }

 private:
  std::filesystem::path file_of(const std::string& text) const {
    return folder_ / digest_of(id() + '\0' + text).hex();
  }

  std::vector<float> read(const std::string& text) const {
    const Result<std::string> bytes = os::read_file(file_of(text), kVectorBytesMax);
    if (!bytes || bytes->size() % sizeof(float) != 0) return {};
    std::vector<float> vector(bytes->size() / sizeof(float));
    std::memcpy(vector.data(), bytes->data(), bytes->size());
    const bool sound = std::ranges::all_of(vector, [](float x) { return std::isfinite(x); });
    return sound ? vector : std::vector<float>();
  }

  void keep(const std::string& text, const std::vector<float>& vector) {
    const std::string_view bytes(reinterpret_cast<const char*>(vector.data()),
                                 vector.size() * sizeof(float));
    Result<void> kept = os::make_directories(folder_);
    if (kept) kept = os::write_file_atomically(file_of(text), bytes);
    if (kept || told_) return;
    told_ = true;
    events_.emit("stage", {{"what", "vectors are not kept: " + kept.error().to_string()}});
  }

  std::unique_ptr<Embedder> inner_;
  std::filesystem::path folder_;
  EventSink& events_;
  bool told_ = false;
};

}  // namespace

std::unique_ptr<Embedder> make_embedder(std::unique_ptr<Provider> transport) {
  return std::make_unique<BatchingEmbedder>(std::move(transport));
}

std::unique_ptr<Embedder> with_cache(std::unique_ptr<Embedder> inner, std::filesystem::path folder,
                                     EventSink& events) {
  return std::make_unique<CachedEmbedder>(std::move(inner), std::move(folder), events);
}

}  // namespace ke::llm
