// SPDX-License-Identifier: Apache-2.0
//
// A thin owner of one SQLite connection and its statements: typed binding and reading, and SQLite's
// result codes turned into one sentence each. Knows nothing of our tables.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/digest.hpp"
#include "base/result.hpp"
#include "base/units.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace ke {

class Statement {
 public:
  Statement(sqlite3* database, sqlite3_stmt* handle, const std::string* name)
      : database_(database), handle_(handle), name_(name) {}
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  // Binds the next parameter. Text and digests are copied.
  Statement& bind(int64_t value);
  Statement& bind(double value);
  Statement& bind(std::string_view text);
  Statement& bind(const Digest& digest);
  Statement& bind(const std::optional<double>& value);

  // True when a row is there; false at the end.
  Result<bool> step();
  // Steps once, for statements that give no rows.
  Result<void> run();

  int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;
  bool is_null(int column) const;
  Result<Digest> digest(int column) const;  // fails when the blob is not 32 bytes

 private:
  sqlite3* database_;
  sqlite3_stmt* handle_;
  const std::string* name_;  // the file, for messages
  int next_ = 1;
};

class Database {
 public:
  // Errors as open_sqlite_store lists them.
  static Result<std::unique_ptr<Database>> open(const std::filesystem::path& file, bool writable,
                                                Milliseconds busy_timeout);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  Result<Statement> prepare(std::string_view sql);
  Result<void> execute(const char* script);      // several statements, no rows
  Result<int64_t> number(std::string_view sql);  // first column of the first row
  int64_t last_id() const;

 private:
  Database(sqlite3* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  sqlite3* handle_;
  std::string name_;
};

// Rolls back unless commit() succeeded.
class Transaction {
 public:
  static Result<Transaction> begin(Database& database);  // takes the write lock at once
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Result<void> commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

}  // namespace ke
