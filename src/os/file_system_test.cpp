// SPDX-License-Identifier: Apache-2.0
#include "os/file_system.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace ke::os {
namespace {

class FileSystem : public testing::Test {
 protected:
  TemporaryDirectory folder_ = TemporaryDirectory::create().value();
  std::filesystem::path at(const char* name) const { return folder_.path() / name; }
};

TEST_F(FileSystem, WritesAndReadsBack) {
  const std::string contents("a\0b\n", 4);
  ASSERT_TRUE(write_file_atomically(at("f"), contents));
  EXPECT_EQ(read_file(at("f"), 4).value(), contents);
  ASSERT_TRUE(write_file_atomically(at("f"), "new", 0600));
  EXPECT_EQ(read_file(at("f"), 100).value(), "new");
  EXPECT_EQ(list_directory(folder_.path()).value(), std::vector<std::string>{"f"});
}

TEST_F(FileSystem, RefusesFilesThatAreTooLarge) {
  ASSERT_TRUE(write_file_atomically(at("f"), "12345"));
  const Error error = read_file(at("f"), 4).error();
  EXPECT_EQ(error.code, Errc::invalid);
  EXPECT_EQ(error.message, "cannot read " + at("f").string() + ": it is larger than 4 bytes");
}

TEST_F(FileSystem, SaysWhatIsWrongInOneSentence) {
  EXPECT_EQ(read_file(at("absent"), 10).error().message,
            "cannot read " + at("absent").string() + ": it does not exist");
  EXPECT_EQ(read_file(at("absent"), 10).error().code, Errc::not_found);
  EXPECT_EQ(read_file(folder_.path(), 10).error().message,
            "cannot read " + folder_.path().string() + ": it is a folder");
  EXPECT_EQ(read_file("/dev/null", 10).error().message, "cannot read /dev/null: it is not a file");
  ASSERT_EQ(mkfifo(at("fifo").c_str(), 0600), 0);
  EXPECT_FALSE(read_file(at("fifo"), 10));  // and does not wait for a writer
  EXPECT_FALSE(write_file_atomically(at("no/such/folder"), "x"));
  EXPECT_EQ(write_file_atomically("/proc/version", "x").error().code, Errc::not_found);
}

TEST_F(FileSystem, NamesAFullDiskAndAReadOnlyOne) {
  EXPECT_EQ(system_error(ENOSPC, "write x").message, "cannot write x: the disk is full");
  EXPECT_EQ(system_error(ENOSPC, "write x").code, Errc::unavailable);
  EXPECT_EQ(system_error(EROFS, "write x").message, "cannot write x: the file system is read-only");
}

TEST_F(FileSystem, LeavesNothingBehindWhenAWriteFails) {
  ASSERT_TRUE(make_directories(at("target/inner")));  // a folder cannot be replaced by a file
  EXPECT_FALSE(write_file_atomically(at("target"), "x"));
  EXPECT_EQ(list_directory(folder_.path()).value(), std::vector<std::string>{"target"});
}

TEST_F(FileSystem, MakesAndRemovesTrees) {
  ASSERT_TRUE(make_directories(at("a/b/c")));
  ASSERT_TRUE(make_directories(at("a/b/c")));
  ASSERT_TRUE(write_file_atomically(at("a/file"), ""));
  EXPECT_FALSE(make_directories(at("a/file")));
  EXPECT_TRUE(os::exists(at("a/b")));
  ASSERT_TRUE(remove_tree(at("a")));
  ASSERT_TRUE(remove_tree(at("a")));
  EXPECT_FALSE(os::exists(at("a")));
  EXPECT_EQ(list_directory(at("a")).error().code, Errc::not_found);
}

TEST_F(FileSystem, FindsPrograms) {
  ASSERT_TRUE(write_file_atomically(at("tool"), "#!/bin/sh\n", 0755));
  ASSERT_TRUE(write_file_atomically(at("text"), "", 0644));
  const std::string list = "/nonexistent::" + folder_.path().string();
  EXPECT_EQ(find_program("tool", list).value(), at("tool"));
  EXPECT_FALSE(find_program("text", list));
  EXPECT_FALSE(find_program(at("text").string()));
  EXPECT_TRUE(find_program("sh"));
  EXPECT_TRUE(os::exists(own_executable().value()));
}

TEST_F(FileSystem, TemporaryFolderGoesWithItsObject) {
  std::filesystem::path path;
  {
    TemporaryDirectory first = TemporaryDirectory::create().value();
    const TemporaryDirectory second = std::move(first);
    path = second.path();
    EXPECT_TRUE(os::exists(path));
  }
  EXPECT_FALSE(os::exists(path));
}

TEST_F(FileSystem, LockNamesItsHolder) {
  {
    const FileLock lock = FileLock::try_lock(at("lock")).value();
    const Error error = FileLock::try_lock(at("lock")).error();
    EXPECT_EQ(error.code, Errc::conflict);
    EXPECT_EQ(error.message,
              at("lock").string() + " is locked by process " + std::to_string(getpid()));
  }
  EXPECT_TRUE(FileLock::try_lock(at("lock")));
  EXPECT_TRUE(FileLock::lock(at("lock")));
  EXPECT_EQ(FileLock::try_lock(at("no/lock")).error().code, Errc::not_found);
}

}  // namespace
}  // namespace ke::os
