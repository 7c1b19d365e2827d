// SPDX-License-Identifier: Apache-2.0
//
// The bundled documents themselves: readable, findable, linked.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>

#include "knowledge/catalogue.hpp"

namespace ke::knowledge {
namespace {

namespace fs = std::filesystem;

const std::set<std::string> kTargets{"any",  "x86", "cuda",   "triton",
                                     "cute", "hip", "opencl", "rvv"};
constexpr size_t kDocumentsMin = 60;

// Targets of relative links, resolved against the document's folder, without #anchors.
std::vector<std::string> links_of(const Document& document) {
  static const std::regex kLink(R"(\]\(([^)\s]+)\))");
  std::vector<std::string> links;
  for (auto at = std::sregex_iterator(document.body.begin(), document.body.end(), kLink);
       at != std::sregex_iterator(); ++at) {
    const std::string link = (*at)[1].str();
    if (link.starts_with('#') || link.find("://") != std::string::npos) continue;
    const fs::path path = fs::path(document.path).parent_path() / link.substr(0, link.find('#'));
    links.push_back(path.lexically_normal().generic_string());
  }
  return links;
}

TEST(Documents, AllParseAndThereAreEnough) {
  const Catalogue catalogue = Catalogue::load({});
  for (const std::string& warning : catalogue.warnings()) ADD_FAILURE() << warning;
  EXPECT_GE(catalogue.documents().size(), kDocumentsMin + 1);  // and the index
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(KE_SOURCE_DIR "/knowledge")) {
    files += entry.path().extension() == ".md" ? 1 : 0;
  }
  EXPECT_EQ(catalogue.documents().size(), files);
}

TEST(Documents, NameKnownTargetsAndTheirBottleneck) {
  const Catalogue catalogue = Catalogue::load({});
  for (const Document& document : catalogue.documents()) {
    SCOPED_TRACE(document.path);
    EXPECT_FALSE(document.topics.empty());
    EXPECT_FALSE(document.bounds.empty());
    EXPECT_FALSE(document.lead().empty());
    for (const std::string& target : document.targets) {
      EXPECT_TRUE(kTargets.contains(target)) << target;
    }
  }
}

TEST(Documents, LinkToDocumentsThatExist) {
  const Catalogue catalogue = Catalogue::load({});
  for (const Document& document : catalogue.documents()) {
    for (const std::string& link : links_of(document)) {
      EXPECT_NE(catalogue.find(link), nullptr) << document.path << " links to " << link;
    }
  }
}

TEST(Documents, AreAllListedInTheIndex) {
  const Catalogue catalogue = Catalogue::load({});
  const Document* index = catalogue.find("index.md");
  ASSERT_NE(index, nullptr);
  const auto links = links_of(*index);
  const std::set<std::string> listed(links.begin(), links.end());
  for (const Document& document : catalogue.documents()) {
    if (&document != index) {
      EXPECT_TRUE(listed.contains(document.path)) << document.path << " is not in index.md";
    }
  }
}

}  // namespace
}  // namespace ke::knowledge
