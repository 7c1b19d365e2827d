// SPDX-License-Identifier: Apache-2.0
//
// ModelOptions as JSON, a part of a run's config.
#pragma once

#include "base/json_fwd.hpp"
#include "search/search.hpp"

namespace ke {

Json encode(const ModelOptions& options);
Result<ModelOptions> decode_models(const Json& json);

// What a recorded run has spent on models.
Result<ModelSpending> spending_of(const GraphReader& graph, RunId run);

}  // namespace ke
