// SPDX-License-Identifier: Apache-2.0
//
// Texts to vectors: how alike two texts are is the cosine between theirs, whatever words they use.
//
// The way to an endpoint is a Provider, whose messages are the texts and whose answer is their
// vectors as JSON; so retry, budget, keys, proxies and limits are those of completions.
#pragma once

#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "llm/provider.hpp"

namespace ke::llm {

using Vectors = std::vector<std::vector<float>>;

struct [[nodiscard]] VectorsOrFailure : tl::expected<Vectors, Failure> {
  using tl::expected<Vectors, Failure>::expected;
  VectorsOrFailure(Failure failure)
      : tl::expected<Vectors, Failure>(tl::make_unexpected(std::move(failure))) {}
};

class Embedder {
 public:
  virtual ~Embedder() = default;
  virtual std::string id() const = 0;  // "openai:NAME"
  // One vector a text, in order, all of one length, finite and none of zeros alone. Texts are not
  // empty.
  virtual VectorsOrFailure embed(const std::vector<std::string>& texts, std::stop_token stop) = 0;
};

// Servers limit how many texts a call may have, and the smallest limits are about this.
inline constexpr size_t kTextsPerCall = 32;

// In batches of kTextsPerCall. `transport` as open_embedding_transport() makes it.
std::unique_ptr<Embedder> make_embedder(std::unique_ptr<Provider> transport);

// Keeps every vector below `folder` (made when needed) by the digest of model and text, and asks
// `inner` only for those that are not there. A file that is damaged counts as absent. That vectors
// cannot be kept is told `events` once ("stage"), and fails nothing.
std::unique_ptr<Embedder> with_cache(std::unique_ptr<Embedder> inner, std::filesystem::path folder,
                                     EventSink& events);

// "openai:NAME", with retry. Errc::invalid with a sentence when the provider has no embeddings, or
// its environment is at fault.
Result<std::unique_ptr<Provider>> open_embedding_transport(std::string_view spec,
                                                           const ProviderContext& context);

}  // namespace ke::llm
