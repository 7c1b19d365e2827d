// SPDX-License-Identifier: Apache-2.0
//
// The tools of `kernelevolve mcp`, and the knowledge base as resources. An agent hands in sources
// and gets verdicts, times, documents; nothing lets it set what decides them.
#pragma once

#include <memory>

#include "app/workbench.hpp"
#include "knowledge/vectors.hpp"
#include "mcp/backend.hpp"

namespace ke::mcp {

// The workbench outlives what is returned. `vectorizer` may be null: then documents are found by
// words alone.
std::unique_ptr<Backend> make_toolbox(
    app::Workbench& workbench, std::unique_ptr<knowledge::Vectorizer> vectorizer = nullptr);

}  // namespace ke::mcp
