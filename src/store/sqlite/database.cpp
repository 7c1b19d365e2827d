// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/database.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cstring>
#include <utility>

#include "base/assert.hpp"

namespace ke {
namespace {

// Result codes: https://www.sqlite.org/rescode.html. The lower byte is the primary code.
Error error_of(int code, const std::string& file, const char* detail) {
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Error{Errc::conflict,
                   fmt::format("{} is in use by another process; wait for it or use another "
                               "workspace",
                               file)};
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return Error{
          Errc::refused,
          fmt::format("{} cannot be written; make it writable or use another workspace", file)};
    case SQLITE_CANTOPEN:
      return Error{
          Errc::refused,
          fmt::format("{} cannot be opened; check that its folder exists and is writable", file)};
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      return Error{Errc::invalid,
                   fmt::format("{} is damaged or not an experience database; move it away to start "
                               "afresh, or restore a copy",
                               file)};
    case SQLITE_FULL:
      return Error{
          Errc::unavailable,
          fmt::format("the disk that holds {} is full; nothing recorded so far is lost", file)};
    case SQLITE_CONSTRAINT:
      return Error{Errc::conflict, fmt::format("{} already holds this row ({})", file, detail)};
    default:
      return Error{Errc::internal, fmt::format("{}: {}", file, detail)};
  }
}

}  // namespace

// --- Statement ----------------------------------------------------------------------------------

Statement::Statement(Statement&& other) noexcept
    : database_(other.database_),
      handle_(std::exchange(other.handle_, nullptr)),
      name_(other.name_),
      next_(other.next_) {}

Statement::~Statement() { sqlite3_finalize(handle_); }

Statement& Statement::bind(int64_t value) {
  KE_ASSERT(sqlite3_bind_int64(handle_, next_++, value) == SQLITE_OK);
  return *this;
}

Statement& Statement::bind(double value) {
  KE_ASSERT(sqlite3_bind_double(handle_, next_++, value) == SQLITE_OK);
  return *this;
}

Statement& Statement::bind(std::string_view text) {
  KE_ASSERT(sqlite3_bind_text64(handle_, next_++, text.data(), text.size(), SQLITE_TRANSIENT,
                                SQLITE_UTF8) == SQLITE_OK);
  return *this;
}

Statement& Statement::bind(const Digest& digest) {
  KE_ASSERT(sqlite3_bind_blob(handle_, next_++, digest.bytes.data(),
                              static_cast<int>(digest.bytes.size()),
                              SQLITE_TRANSIENT) == SQLITE_OK);
  return *this;
}

Statement& Statement::bind(const std::optional<double>& value) {
  if (value) return bind(*value);
  KE_ASSERT(sqlite3_bind_null(handle_, next_++) == SQLITE_OK);
  return *this;
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return error_of(code, *name_, sqlite3_errmsg(database_));
}

Result<void> Statement::run() {
  const bool row = TRY(step());
  KE_ASSERT(!row);
  return {};
}

int64_t Statement::integer(int column) const { return sqlite3_column_int64(handle_, column); }
double Statement::real(int column) const { return sqlite3_column_double(handle_, column); }
bool Statement::is_null(int column) const {
  return sqlite3_column_type(handle_, column) == SQLITE_NULL;
}

std::string Statement::text(int column) const {
  const unsigned char* data = sqlite3_column_text(handle_, column);
  if (!data) return {};
  return std::string(reinterpret_cast<const char*>(data),
                     static_cast<size_t>(sqlite3_column_bytes(handle_, column)));
}

Result<Digest> Statement::digest(int column) const {
  Digest digest;
  const void* data = sqlite3_column_blob(handle_, column);
  const auto bytes = static_cast<size_t>(sqlite3_column_bytes(handle_, column));
  if (bytes != digest.bytes.size()) return error_of(SQLITE_CORRUPT, *name_, "");
  std::memcpy(digest.bytes.data(), data, bytes);
  return digest;
}

// --- Database -----------------------------------------------------------------------------------

Result<std::unique_ptr<Database>> Database::open(const std::filesystem::path& file, bool writable,
                                                 Milliseconds busy_timeout) {
  const int flags = writable ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(file.c_str(), &handle, flags, nullptr);
  std::unique_ptr<Database> database(new Database(handle, file.string()));
  if (code != SQLITE_OK) {
    return error_of(code, database->name_, handle ? sqlite3_errmsg(handle) : "out of memory");
  }
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, static_cast<int>(busy_timeout.count()));
  // SQLite falls back to reading when a file cannot be written.
  if (writable && sqlite3_db_readonly(handle, "main") == 1) {
    return error_of(SQLITE_READONLY, database->name_, "");
  }
  return database;
}

Database::~Database() { sqlite3_close_v2(handle_); }

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code =
      sqlite3_prepare_v2(handle_, sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  if (code != SQLITE_OK) return error_of(code, name_, sqlite3_errmsg(handle_));
  return Statement(handle_, statement, &name_);
}

Result<void> Database::execute(const char* script) {
  const int code = sqlite3_exec(handle_, script, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return error_of(code, name_, sqlite3_errmsg(handle_));
  return {};
}

Result<int64_t> Database::number(std::string_view sql) {
  Statement statement = TRY(prepare(sql));
  if (!TRY(statement.step())) return error_of(SQLITE_CORRUPT, name_, "");
  return statement.integer(0);
}

int64_t Database::last_id() const { return sqlite3_last_insert_rowid(handle_); }

// --- Transaction --------------------------------------------------------------------------------

Result<Transaction> Transaction::begin(Database& database) {
  TRY(database.execute("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Transaction::~Transaction() {
  // A rollback fails only when SQLite has rolled back already (as after a full disk).
  if (database_) static_cast<void>(database_->execute("ROLLBACK"));
}

Result<void> Transaction::commit() {
  TRY(database_->execute("COMMIT"));
  database_ = nullptr;
  return {};
}

}  // namespace ke
