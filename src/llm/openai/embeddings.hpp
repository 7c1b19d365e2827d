// SPDX-License-Identifier: Apache-2.0
//
// POST {base}/embeddings, as OpenAI defined it and vLLM, llama.cpp, Ollama and others serve it.
#pragma once

#include <memory>
#include <string_view>

#include "llm/provider.hpp"

namespace ke::llm {

// A transport as llm/embedder.hpp wants it. Errc::invalid as for completions.
Result<std::unique_ptr<Provider>> make_openai_embeddings(std::string_view model,
                                                         const ProviderContext& context);

}  // namespace ke::llm
