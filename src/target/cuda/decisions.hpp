// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace ke::cuda {

// A few words on what a decision of a schedule means, for people and models; empty when unknown.
std::string_view meaning_of(std::string_view decision);

}  // namespace ke::cuda
