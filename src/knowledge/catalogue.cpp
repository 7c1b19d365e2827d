// SPDX-License-Identifier: Apache-2.0
#include "knowledge/catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "embedded/ke_knowledge_files.hpp"
#include "os/file_system.hpp"

namespace ke::knowledge {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kFilesMax = 10'000;  // of one folder

// Relative paths of the *.md files below a folder, sorted. Links to folders are not followed.
std::vector<std::string> markdown_below(const fs::path& folder,
                                        std::vector<std::string>& warnings) {
  std::vector<std::string> found;
  std::error_code error;
  auto walk = fs::recursive_directory_iterator(
      folder, fs::directory_options::skip_permission_denied, error);
  for (int64_t seen = 0; !error && walk != fs::recursive_directory_iterator(); ++seen) {
    if (seen == kFilesMax) {
      warnings.push_back(fmt::format("{} has more than {} files; the rest is not read.",
                                     folder.string(), kFilesMax));
      break;
    }
    std::error_code unreadable;
    if (walk->path().extension() == ".md" && walk->is_regular_file(unreadable)) {
      found.push_back(walk->path().lexically_relative(folder).generic_string());
    }
    walk.increment(error);
  }
  if (error) {
    warnings.push_back(fmt::format("{} cannot be read: {}.", folder.string(), error.message()));
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace

std::vector<SourceFile> bundled_files() {
  std::vector<SourceFile> files;
  for (const embedded::EmbeddedFile& file : embedded::ke_knowledge_files_files()) {
    files.push_back({std::string(file.name), std::string(file.contents), std::string(kBundled)});
  }
  return files;
}

Catalogue Catalogue::of(std::span<const SourceFile> files) {
  Catalogue catalogue;
  for (const SourceFile& file : files) catalogue.add(file);
  return catalogue;
}

Catalogue Catalogue::load(std::span<const fs::path> folders) {
  Catalogue catalogue = of(bundled_files());
  for (const fs::path& folder : folders) catalogue.add_folder(folder);
  return catalogue;
}

const Document* Catalogue::find(std::string_view path) const {
  const auto at = std::ranges::lower_bound(documents_, path, {}, &Document::path);
  return at != documents_.end() && at->path == path ? &*at : nullptr;
}

void Catalogue::add(SourceFile file) {
  auto parsed = parse_document(file.path, file.text, std::move(file.origin));
  if (!parsed) {
    warnings_.push_back(parsed.error().to_string());
    return;
  }
  const auto at = std::ranges::lower_bound(documents_, parsed->path, {}, &Document::path);
  if (at != documents_.end() && at->path == parsed->path)
    *at = std::move(*parsed);
  else
    documents_.insert(at, std::move(*parsed));
}

void Catalogue::add_folder(const fs::path& folder) {
  if (!os::exists(folder)) return;
  for (const std::string& path : markdown_below(folder, warnings_)) {
    auto text = os::read_file(folder / path, kDocumentBytesMax);
    if (text)
      add({path, std::move(*text), folder.string()});
    else
      warnings_.push_back(text.error().to_string() + ".");
  }
}

}  // namespace ke::knowledge
