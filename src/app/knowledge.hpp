// SPDX-License-Identifier: Apache-2.0
//
// The knowledge base of a workspace: the bundled documents under the user's own, which lie in its
// folder knowledge/. Reading needs no workspace; what is missing is empty.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json_fwd.hpp"
#include "base/result.hpp"
#include "knowledge/library.hpp"

namespace ke::app {

std::filesystem::path knowledge_folder(const std::filesystem::path& workspace);
knowledge::Catalogue load_knowledge(const std::filesystem::path& workspace);

// The document at a path as searches print it. Errc::not_found with close paths.
Result<const knowledge::Document*> show_document(const knowledge::Library& library,
                                                 const std::string& path);

// Checks a file and copies it into the workspace under its own name; returns where. Errc::conflict
// when another document of the user's has that name.
Result<std::filesystem::path> add_document(const std::filesystem::path& file,
                                           const std::filesystem::path& workspace);

// Skills that wait for a decision, by path.
std::vector<const knowledge::Document*> proposed_skills(const knowledge::Catalogue& catalogue);

// Accepts or rejects one, whatever it was before; `id` is the file's name without .md.
Result<void> decide_skill(const std::string& id, knowledge::SkillStatus status,
                          const std::filesystem::path& workspace);
// "0a1b2c3d4e5f" of "skills/0a1b2c3d4e5f.md".
std::string id_of_skill(const knowledge::Document& document);

// --- Text and JSON ------------------------------------------------------------------------------

std::string hits_text(const std::vector<knowledge::Hit>& hits);
Json encode(const knowledge::Hit& hit);
std::string lines_text(const std::vector<knowledge::FoundLine>& lines);
Json encode(const knowledge::FoundLine& line);
// What a document is, without its text: path, title, for whom, origin, a skill's evidence.
Json describe(const knowledge::Document& document);
std::string skills_text(const std::vector<const knowledge::Document*>& skills);

}  // namespace ke::app
