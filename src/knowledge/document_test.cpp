// SPDX-License-Identifier: Apache-2.0
#include "knowledge/document.hpp"

#include <gtest/gtest.h>

#include "knowledge/catalogue.hpp"
#include "os/file_system.hpp"

namespace ke::knowledge {
namespace {

constexpr const char* kGood =
    "---\n"
    "title: Sums: short and long\n"
    "targets: [any]\n"
    "topics: [sum, \"row reduction\"]\n"
    "bottleneck: [memory, latency]\n"
    "---\n"
    "\n# Sums\n\nUse this when\nadding.\n\nThen do that.\n";

std::string message_of(const std::string& path, std::string_view text) {
  const auto document = parse_document(path, text, "");
  return document ? "" : document.error().message;
}

TEST(Document, ReadsFrontMatterAndBody) {
  const auto document = parse_document("guidance/sums.md", kGood, std::string(kBundled));
  ASSERT_TRUE(document) << document.error().message;
  EXPECT_EQ(document->title, "Sums: short and long");
  EXPECT_EQ(document->topics, (std::vector<std::string>{"sum", "row reduction"}));
  EXPECT_EQ(document->bounds, (std::vector{Bound::memory, Bound::latency}));
  EXPECT_EQ(document->lead(), "Use this when\nadding.");
  EXPECT_EQ(document->text, kGood);
  EXPECT_TRUE(document->is_for("rvv"));
  EXPECT_FALSE(document->names("rvv"));
  EXPECT_TRUE(document->searchable());
}

TEST(Document, ReadsLinesThatEndAsOnWindows) {
  const auto document = parse_document(
      "a.md", "---\r\ntitle: A\r\ntargets: [any]\r\ntopics: [a]\r\n---\r\nText.\r\n", "");
  ASSERT_TRUE(document) << document.error().message;
  EXPECT_EQ(document->title, "A");
  EXPECT_EQ(document->topics, std::vector<std::string>{"a"});
}

TEST(Document, NamesFileAndLineOfWhatIsWrong) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"", "d.md:1: there is no front matter; begin with `---` and end it with `---`."},
      {"# Title\n", "d.md:1: there is no front matter; begin with `---` and end it with `---`."},
      {"---\ntitle: A\n", "d.md:2: the front matter has no closing `---` within 64 lines."},
      {"---\njust words\n---\n",
       "d.md:2: 'just words' is no `key: value`; write one a line until `---`."},
      {"---\ntitle: A\ntopics: [a\n---\n",
       "d.md:3: the list of 'topics' lacks its ']' on this line."},
      {"---\ntitle: A\ntitle: B\n---\n", "d.md:3: 'title' stands twice."},
      {"---\ntitle: [A]\n---\n", "d.md:2: 'title' is a text, not a list."},
      {"---\ntopics: a\n---\n", "d.md:2: 'topics' is a list; write topics: [a, b]."},
      {"---\ntargets: [X 86]\n---\n",
       "d.md:2: 'X 86' is no target; write `any` or names as [a_target, another]."},
      {"---\nbottleneck: [slow]\n---\n",
       "d.md:2: a bottleneck is one of memory, compute, latency, overhead, correctness, not "
       "'slow'."},
      {"---\nauthor: me\n---\n",
       "d.md:2: 'author' is no field; there are title, targets, topics and bottleneck."},
      {"---\nauthors: [me]\n---\n",
       "d.md:2: 'authors' is no field; there are title, targets, topics and bottleneck."},
      {"---\nstatus: accepted\n---\n",
       "d.md:2: 'status' is no field; there are title, targets, topics and bottleneck."},
      {"---\ntargets: [any]\ntopics: [a]\n---\n", "d.md:4: the front matter lacks a `title`."},
      {"---\ntitle: A\ntopics: [a]\n---\n",
       "d.md:4: the front matter lacks `targets`; write targets: [any]."},
      {"---\ntitle: A\ntargets: [any]\ntopics: []\n---\n",
       "d.md:5: the front matter lacks `topics`; name at least one."},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.text);
    EXPECT_EQ(message_of("d.md", one.text), one.message);
  }
}

TEST(Document, RefusesWhatIsNoTextOrTooLong) {
  EXPECT_NE(message_of("d.md", std::string_view("---\n\0---\n", 9)).find("zero byte"),
            std::string::npos);
  const std::string longer = kGood + std::string(kDocumentBytesMax, 'x');
  EXPECT_NE(message_of("d.md", longer).find("at most 262144 bytes"), std::string::npos);
}

// --- Catalogue ----------------------------------------------------------------------------------

std::string titled(const std::string& title) {
  return "---\ntitle: " + title + "\ntargets: [any]\ntopics: [a]\n---\nText.\n";
}

TEST(Catalogue, LaterFilesWithTheSamePathWin) {
  const SourceFile files[] = {{"a.md", titled("first"), "bundled"},
                              {"b.md", titled("other"), "bundled"},
                              {"a.md", titled("second"), "/mine"}};
  const Catalogue catalogue = Catalogue::of(files);
  ASSERT_EQ(catalogue.documents().size(), 2u);
  EXPECT_EQ(catalogue.find("a.md")->title, "second");
  EXPECT_EQ(catalogue.find("a.md")->origin, "/mine");
  EXPECT_EQ(catalogue.find("c.md"), nullptr);
}

TEST(Catalogue, KeepsTheEarlierDocumentAndWarnsWhenTheLaterIsBroken) {
  const SourceFile files[] = {{"a.md", titled("first"), "bundled"},
                              {"a.md", "no front matter", "/mine"}};
  const Catalogue catalogue = Catalogue::of(files);
  EXPECT_EQ(catalogue.find("a.md")->title, "first");
  ASSERT_EQ(catalogue.warnings().size(), 1u);
  EXPECT_TRUE(catalogue.warnings()[0].starts_with("/mine/a.md:1: ")) << catalogue.warnings()[0];
}

TEST(Catalogue, ReadsFoldersAndLeavesOutWhatIsNoDocument) {
  const auto folder = os::TemporaryDirectory::create();
  ASSERT_TRUE(folder);
  ASSERT_TRUE(os::make_directories(folder->path() / "deep/er"));
  ASSERT_TRUE(os::write_file_atomically(folder->path() / "deep/er/mine.md", titled("mine")));
  ASSERT_TRUE(os::write_file_atomically(folder->path() / "notes.txt", "not a document"));
  ASSERT_TRUE(os::write_file_atomically(folder->path() / "bad.md", "bad"));
  std::filesystem::create_directory_symlink(folder->path(), folder->path() / "deep/loop.md");
  std::filesystem::create_symlink("nowhere", folder->path() / "dangling.md");
  const std::filesystem::path folders[] = {folder->path(), folder->path() / "absent"};
  const Catalogue catalogue = Catalogue::load(folders);
  ASSERT_NE(catalogue.find("deep/er/mine.md"), nullptr);
  EXPECT_EQ(catalogue.find("notes.txt"), nullptr);
  ASSERT_EQ(catalogue.warnings().size(), 1u) << catalogue.warnings().back();
  EXPECT_NE(catalogue.warnings()[0].find("bad.md:1: "), std::string::npos);
}

}  // namespace
}  // namespace ke::knowledge
