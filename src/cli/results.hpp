// SPDX-License-Identifier: Apache-2.0
//
// Results as text for people.
#pragma once

#include <string>

#include "app/optimize.hpp"

namespace ke::cli {

// To stdout, at once.
void print(const std::string& text);

// Which kernel, proved how, how much faster, where it lies.
std::string optimize_text(const app::OptimizeReport& report);
// The verdict, the errors against their budget, and the times when they were measured.
std::string judge_text(const app::JudgeReport& report);

}  // namespace ke::cli
