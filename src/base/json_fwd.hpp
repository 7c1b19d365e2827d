// SPDX-License-Identifier: Apache-2.0
//
// Names the JSON value type without its definition, so that headers stay cheap.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace ke {
using Json = nlohmann::json;
}  // namespace ke
