// SPDX-License-Identifier: Apache-2.0
//
// A small knowledge base for tests: its pages are given, and a search finds those that hold its
// words as they stand.
#pragma once

#include <algorithm>

#include "propose/model/ground.hpp"
#include "propose/model/task.hpp"

namespace ke::testing_support {

class FakeGround : public GroundSource {
 public:
  explicit FakeGround(std::vector<PromptDocument> given = {}) : pages(std::move(given)) {}

  Result<std::optional<KernelProfile>> profile(const NodeRow&) override {
    return std::optional<KernelProfile>();
  }
  Result<std::vector<PromptDocument>> documents(const ProposalContext&, const Diagnosis& diagnosis,
                                                int64_t) override {
    std::vector<PromptDocument> all = pages;
    for (PromptDocument& page : all) page.reason = "the bound is " + diagnosis.bound;
    return all;
  }
  Result<std::vector<IndexEntry>> index(const ProposalContext&,
                                        const Diagnosis& diagnosis) override {
    asked_about = diagnosis;
    std::vector<IndexEntry> entries;
    for (const PromptDocument& page : pages) {
      if (!page.path.starts_with("hidden/")) entries.push_back(entry_of(page));
    }
    return entries;
  }
  Result<Found> look_up(const llm::ToolCall& search) override {
    Found found{.search = search, .entries = {}, .note = {}};
    if (search.what == "(") found.note = "this is no regular expression.";
    for (const PromptDocument& page : pages) {
      const std::string& in = search.by == llm::FindBy::path ? page.path : page.text;
      if (in.find(search.what) != std::string::npos) found.entries.push_back(entry_of(page));
    }
    return found;
  }
  Result<std::optional<PromptDocument>> read(const std::string& path) override {
    const auto found = std::ranges::find(pages, path, &PromptDocument::path);
    if (found == pages.end()) return std::optional<PromptDocument>();
    return std::optional<PromptDocument>(*found);
  }
  Result<std::string> use(const llm::ToolCall&) override { return std::string(); }

  std::vector<PromptDocument> pages;  // those below hidden/ are found by searches only
  Diagnosis asked_about;              // by the last call of index()

 private:
  static IndexEntry entry_of(const PromptDocument& page) {
    return {page.path, page.title, "", page.text.substr(0, page.text.find('\n'))};
  }
};

}  // namespace ke::testing_support
