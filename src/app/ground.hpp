// SPDX-License-Identifier: Apache-2.0
//
// What prompts draw on in a workspace: its knowledge base, and the tools that look at kernels.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "eval/evaluator.hpp"
#include "knowledge/vectors.hpp"
#include "propose/model/ground.hpp"

namespace ke::app {

// `evaluator` may be null (then no kernel is profiled or compiled), and must outlive what is
// returned. So may `vectorizer`: then documents are found by words alone.
std::unique_ptr<GroundSource> workspace_ground(
    const std::filesystem::path& workspace, std::string target, Evaluator* evaluator,
    std::unique_ptr<knowledge::Vectorizer> vectorizer = nullptr);

}  // namespace ke::app
