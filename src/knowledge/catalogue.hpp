// SPDX-License-Identifier: Apache-2.0
//
// All documents at hand: the bundled ones, overlaid by folders of the user's. A later document with
// the same path replaces an earlier one. What cannot be read becomes a warning, never a failure.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "knowledge/document.hpp"

namespace ke::knowledge {

struct SourceFile {
  std::string path;
  std::string text;
  std::string origin;
};

// knowledge/ as it was when this program was built.
std::vector<SourceFile> bundled_files();

class Catalogue {
 public:
  // In order of overlaying.
  static Catalogue of(std::span<const SourceFile> files);
  // Bundled documents, then every *.md below each folder; a folder that does not exist is empty.
  static Catalogue load(std::span<const std::filesystem::path> folders);

  const std::vector<Document>& documents() const { return documents_; }  // by path
  const Document* find(std::string_view path) const;
  const std::vector<std::string>& warnings() const { return warnings_; }  // one sentence each

 private:
  void add(SourceFile file);
  void add_folder(const std::filesystem::path& folder);

  std::vector<Document> documents_;
  std::vector<std::string> warnings_;
};

}  // namespace ke::knowledge
