// SPDX-License-Identifier: Apache-2.0
//
// What the decisions of this target's schedules mean, for whoever chooses them by reading: people
// and models.
#pragma once

#include <string_view>

namespace ke::x86 {

std::string_view meaning_of(std::string_view decision);  // empty when unknown

}  // namespace ke::x86
