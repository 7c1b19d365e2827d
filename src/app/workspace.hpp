// SPDX-License-Identifier: Apache-2.0
//
// The workspace folder, `.kernelevolve/`: the experience graph and everything derived from it.
//
//   experience.db   the graph          artifacts/  built libraries, by digest
//   cache/          machine profile, torch.compile's cache, unpacked Python files
//   knowledge/      documents of the user's, and skills/ learnt from runs
//   lock            held by whoever writes
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "base/result.hpp"
#include "oracle/zygote.hpp"
#include "os/file_system.hpp"
#include "store/store.hpp"

namespace ke::app {

// joined: as write, beside the process that has the lock and has started this one.
enum class Access : uint8_t { read, write, joined };

class Workspace {
 public:
  // write: creates what is missing and takes the lock (Errc::conflict names the holder).
  // read: the folder must hold an experience.db (Errc::not_found).
  static Result<Workspace> open(const std::filesystem::path& folder, Access access);

  Store& store() { return *store_; }
  // What forks the oracles of all sessions; a process from the first one on.
  oracle::Zygote& zygote() { return *zygote_; }
  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path artifacts() const { return folder_ / "artifacts"; }
  std::filesystem::path cache() const { return folder_ / "cache"; }

 private:
  std::filesystem::path folder_;
  std::optional<os::FileLock> lock_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<oracle::Zygote> zygote_ = std::make_unique<oracle::Zygote>();
};

}  // namespace ke::app
