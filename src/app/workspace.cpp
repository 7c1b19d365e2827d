// SPDX-License-Identifier: Apache-2.0
#include "app/workspace.hpp"

#include <fmt/format.h>

namespace ke::app {
namespace {

Result<os::FileLock> lock_of(const std::filesystem::path& folder,
                             const std::filesystem::path& file) {
  auto lock = os::FileLock::try_lock(file);
  if (lock || lock.error().code != Errc::conflict) return lock;
  return Error{Errc::conflict, fmt::format("the workspace {} is in use ({}); wait for that run "
                                           "or choose another folder with --workspace.",
                                           folder.string(), lock.error().message)};
}

}  // namespace

Result<Workspace> Workspace::open(const std::filesystem::path& folder, Access access) {
  Workspace workspace;
  workspace.folder_ = std::filesystem::absolute(folder);
  const std::filesystem::path database = workspace.folder_ / "experience.db";
  if (access == Access::read) {
    if (!os::exists(database)) {
      return Error{Errc::not_found,
                   fmt::format("there is no experience graph in {}; run `kernelevolve optimize` "
                               "first or name another folder with --workspace.",
                               folder.string())};
    }
    workspace.store_ = TRY(open_sqlite_store(database, StoreMode::read_only));
    return workspace;
  }
  for (const auto& path : {workspace.folder_, workspace.artifacts(), workspace.cache()}) {
    TRY(os::make_directories(path).context("the workspace"));
  }
  if (access == Access::write) workspace.lock_ = TRY(lock_of(folder, workspace.folder_ / "lock"));
  workspace.store_ = TRY(open_sqlite_store(database, StoreMode::read_write));
  return workspace;
}

}  // namespace ke::app
