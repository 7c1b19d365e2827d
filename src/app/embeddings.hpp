// SPDX-License-Identifier: Apache-2.0
//
// Where the knowledge base's vectors come from: an embedder behind the cache of a workspace.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/events.hpp"
#include "base/result.hpp"
#include "knowledge/vectors.hpp"
#include "llm/embedder.hpp"

namespace ke::app {

// `embedder` behind the workspace's cache. When it fails, that is told `events` once ("stage"), and
// it is not asked again.
std::unique_ptr<knowledge::Vectorizer> vectorizer_of(std::unique_ptr<llm::Embedder> embedder,
                                                     const std::filesystem::path& workspace,
                                                     EventSink& events);

// The same from "openai:NAME", for commands without a run and its budget. Null for an empty name.
// Errc::invalid with a sentence for a name, a key or an address that is missing or wrong.
Result<std::unique_ptr<knowledge::Vectorizer>> open_vectorizer(
    const std::string& name, const std::filesystem::path& workspace, EventSink& events);

}  // namespace ke::app
