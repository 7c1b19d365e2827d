// SPDX-License-Identifier: Apache-2.0
#include "app/workspace.hpp"

#include <fmt/format.h>

namespace ke::app {

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
  auto lock = os::FileLock::try_lock(workspace.folder_ / "lock");
  if (!lock && lock.error().code == Errc::conflict) {
    return Error{Errc::conflict, fmt::format("the workspace {} is in use ({}); wait for that run "
                                             "or choose another folder with --workspace.",
                                             folder.string(), lock.error().message)};
  }
  if (!lock) return lock.error();
  workspace.lock_ = std::move(*lock);
  workspace.store_ = TRY(open_sqlite_store(database, StoreMode::read_write));
  return workspace;
}

}  // namespace ke::app
