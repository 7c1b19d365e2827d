// SPDX-License-Identifier: Apache-2.0
//
// How the files of a mailbox are called.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/units.hpp"

namespace ke::llm {

inline constexpr std::string_view kPromptEnd = ".prompt.md";
inline constexpr std::string_view kAnswerEnd = ".answer.md";
inline constexpr int64_t kPromptBytesMax = 64_MiB;

std::filesystem::path prompt_path(const std::filesystem::path& folder, int64_t number);
std::filesystem::path answer_path(const std::filesystem::path& folder, int64_t number);

}  // namespace ke::llm
