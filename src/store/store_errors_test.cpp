// SPDX-License-Identifier: Apache-2.0
//
// What can be wrong with a database file, one test a sentence; and that a kill loses nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "store/sqlite/database.hpp"
#include "store/sqlite/migrations.hpp"
#include "store/store.hpp"

namespace ke {
namespace {

class SqliteFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "ke_store_XXXXXX").string();
    folder_ = mkdtemp(name.data());
    file_ = folder_ / "experience.db";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Error open_error(StoreMode mode = StoreMode::read_write) {
    const auto store = open_sqlite_store(file_, mode);
    EXPECT_FALSE(store);
    return store ? Error{} : store.error();
  }
  void fill(int64_t nodes) {
    const std::unique_ptr<Store> store = *open_sqlite_store(file_);
    const ProblemId problem = *store->insert(ProblemRow{.name = "p"});
    const RunId run = *store->insert(RunRow{.scope = {problem, "x86", "g++"}});
    for (int64_t step = 1; step <= nodes; ++step) {
      ASSERT_TRUE(
          store->insert(NodeRow{.run = run, .step = step, .source = std::string(4000, 'x')}, {}));
    }
  }

  std::filesystem::path folder_;
  std::filesystem::path file_;
};

TEST_F(SqliteFile, KeepsItsRowsWhenReopened) {
  fill(3);
  EXPECT_EQ((*open_sqlite_store(file_))->nodes({})->size(), 3u);
  EXPECT_EQ((*open_sqlite_store(file_, StoreMode::read_only))->nodes({})->size(), 3u);
}

TEST_F(SqliteFile, RefusesToReadAFileThatIsNotThere) {
  const Error error = open_error(StoreMode::read_only);
  EXPECT_EQ(error.code, Errc::not_found);
  EXPECT_EQ(error.message, fmt::format("there is no experience database at {}; `kernelevolve "
                                       "optimize` makes one",
                                       file_.string()));
}

TEST_F(SqliteFile, RefusesAFolderThatIsNotThere) {
  file_ = folder_ / "missing" / "experience.db";
  EXPECT_EQ(open_error().code, Errc::refused);
}

TEST_F(SqliteFile, RefusesANewerSchema) {
  fill(1);
  {
    const auto database = *Database::open(file_, true, Milliseconds{100});
    ASSERT_TRUE(
        database->execute(fmt::format("PRAGMA user_version = {}", kSchemaVersion + 1).c_str()));
  }
  for (const StoreMode mode : {StoreMode::read_write, StoreMode::read_only}) {
    const Error error = open_error(mode);
    EXPECT_EQ(error.code, Errc::conflict);
    EXPECT_NE(error.message.find("newer version"), std::string::npos) << error.message;
  }
}

TEST_F(SqliteFile, ReadsAndGoesOnWithAFileOfAnOlderVersion) {
  {
    const auto database = *Database::open(file_, true, Milliseconds{100});
    ASSERT_TRUE(database->execute(kMigrations[0]));
    ASSERT_TRUE(database->execute(
        fmt::format("PRAGMA application_id = {}; PRAGMA user_version = 1;"
                    "INSERT INTO problems VALUES (1, 'p', '/p.py', zeroblob (32));"
                    "INSERT INTO scopes VALUES (1, 1, 'x86', 'g++');"
                    "INSERT INTO runs VALUES (1, 1, '{{}}', 7, 5);"
                    "INSERT INTO nodes VALUES (1, 1, 1, 1, 'draft', 'parents', 'synth', '',"
                    " zeroblob (32), zeroblob (32), 'int x;', '')",
                    kApplicationId)
            .c_str()));
  }
  const auto store = *open_sqlite_store(file_, StoreMode::read_only);
  EXPECT_EQ((*store->runs({}))[0].description, "");
  EXPECT_FALSE((*store->nodes({}))[0].prompt);
  EXPECT_TRUE(store->journal(RunId{1})->empty());
}

TEST_F(SqliteFile, RefusesAFileThatIsNoDatabase) {
  std::ofstream(file_) << std::string(5000, 'q');
  const Error error = open_error();
  EXPECT_EQ(error.code, Errc::invalid);
  EXPECT_NE(error.message.find("damaged"), std::string::npos) << error.message;
}

TEST_F(SqliteFile, RefusesADatabaseOfSomebodyElse) {
  {
    const auto database = *Database::open(file_, true, Milliseconds{100});
    ASSERT_TRUE(database->execute("CREATE TABLE other (x)"));
  }
  const Error error = open_error();
  EXPECT_EQ(error.code, Errc::invalid);
  EXPECT_NE(error.message.find("not an experience database"), std::string::npos) << error.message;
}

TEST_F(SqliteFile, RefusesDamagedPages) {
  fill(40);
  {
    std::fstream file(file_, std::ios::in | std::ios::out | std::ios::binary);
    const auto size = static_cast<int64_t>(std::filesystem::file_size(file_));
    for (int64_t page = 4096; page < size; page += 4096) {
      file.seekp(page);
      file << std::string(64, '\xa5');
    }
  }
  const Error error = open_error();
  EXPECT_EQ(error.code, Errc::invalid);
  EXPECT_NE(error.message.find("damaged"), std::string::npos) << error.message;
}

TEST_F(SqliteFile, RefusesATruncatedFile) {
  fill(40);
  std::filesystem::resize_file(file_, std::filesystem::file_size(file_) / 2);
  EXPECT_EQ(open_error().code, Errc::invalid);
}

TEST_F(SqliteFile, SaysWhenAnotherWriterHoldsIt) {
  fill(1);
  const std::unique_ptr<Store> store =
      *open_sqlite_store(file_, StoreMode::read_write, Milliseconds{50});
  const auto other = *Database::open(file_, true, Milliseconds{100});
  ASSERT_TRUE(other->execute("BEGIN IMMEDIATE"));
  const auto refused = store->insert(ProblemRow{.name = "q"});  // waits for the busy timeout
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::conflict);
  EXPECT_NE(refused.error().message.find("in use by another process"), std::string::npos);
  EXPECT_EQ(store->problems()->size(), 1u) << "reading needs no lock";
  ASSERT_TRUE(other->execute("ROLLBACK"));
  EXPECT_TRUE(store->insert(ProblemRow{.name = "q"}));
}

TEST_F(SqliteFile, SaysWhenItCannotBeWritten) {
  fill(1);
  std::filesystem::permissions(folder_, std::filesystem::perms(0555));
  std::filesystem::permissions(file_, std::filesystem::perms(0444));
  const bool root = geteuid() == 0;  // root may write anything: become nobody for the attempt
  ASSERT_TRUE(!root || seteuid(65534) == 0);
  const Error error = open_error();
  ASSERT_TRUE(!root || seteuid(0) == 0);
  std::filesystem::permissions(folder_, std::filesystem::perms(0755));
  EXPECT_EQ(error.code, Errc::refused);
  EXPECT_NE(error.message.find("cannot be"), std::string::npos) << error.message;
}

TEST_F(SqliteFile, SaysWhenTheDiskIsFull) {
  const auto database = *Database::open(file_, true, Milliseconds{100});
  ASSERT_TRUE(database->execute("CREATE TABLE t (x); PRAGMA max_page_count = 8"));
  Result<void> last;
  for (int i = 0; i < 20 && last; ++i) {
    Statement insert = *database->prepare("INSERT INTO t VALUES (?)");
    last = insert.bind(std::string(4000, 'x')).run();
  }
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().code, Errc::unavailable);
  EXPECT_NE(last.error().message.find("is full"), std::string::npos) << last.error().message;
}

TEST_F(SqliteFile, RowsAreNeverChanged) {
  fill(1);
  const auto database = *Database::open(file_, true, Milliseconds{100});
  EXPECT_FALSE(database->execute("UPDATE nodes SET note = 'x'"));
  EXPECT_TRUE(database->execute("UPDATE scopes SET target = target"));
}

// The child reports each insert that returned; whatever it reported must be there after the kill.
TEST_F(SqliteFile, AKillLosesNothingThatWasInserted) {
  fill(0);
  for (int round = 0; round < 3; ++round) {
    int pipe_ends[2];
    ASSERT_EQ(pipe(pipe_ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      const auto store = open_sqlite_store(file_);
      const RunId run = (*(*store)->runs({}))[0].id;
      for (int64_t step = round * 100'000 + 1;; ++step) {
        const auto id = (*store)->insert(NodeRow{.run = run, .step = step, .source = "s"}, {});
        if (!id || write(pipe_ends[1], &id->value, sizeof id->value) < 0) _exit(1);
      }
    }
    close(pipe_ends[1]);
    int64_t last = 0;
    for (int seen = 0; seen < 20 + round * 17; ++seen) {
      ASSERT_EQ(read(pipe_ends[0], &last, sizeof last), static_cast<ssize_t>(sizeof last));
    }
    kill(child, SIGKILL);
    while (read(pipe_ends[0], &last, sizeof last) > 0) {
    }
    close(pipe_ends[0]);
    waitpid(child, nullptr, 0);
    const auto nodes = (*open_sqlite_store(file_))->nodes({});
    ASSERT_TRUE(nodes);
    EXPECT_GE(nodes->back().id.value, last);
  }
}

}  // namespace
}  // namespace ke
