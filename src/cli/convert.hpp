// SPDX-License-Identifier: Apache-2.0
//
// Arguments to requests: where form becomes sense, with the user's sentence when it does not.
#pragma once

#include <string>
#include <vector>

#include "app/session.hpp"
#include "base/result.hpp"
#include "cli/arguments.hpp"
#include "search/search.hpp"

namespace ke::cli {

Result<app::SessionOptions> session_options(const JudgeArguments& arguments,
                                            const std::string& problem);
Result<SearchOptions> search_options(const SearchArguments& arguments);
std::vector<std::string> split_commas(const std::string& text);

}  // namespace ke::cli
