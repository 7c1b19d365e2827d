// SPDX-License-Identifier: Apache-2.0
//
// The schema, as the numbered steps that made it. A released step is never edited: a change is a
// new step at the end.
#pragma once

#include <array>

namespace ke {

inline constexpr int64_t kApplicationId = 0x4b45564c;  // "KEVL", in the file's header

// Migration i brings user_version i to i + 1. Tables only grow: triggers refuse changes.
inline constexpr std::array kMigrations = {  // tidy: allow(function) because it is a list
    R"sql(
CREATE TABLE problems (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, path TEXT NOT NULL, digest BLOB NOT NULL,
  UNIQUE (name, digest)
) STRICT;
CREATE TABLE scopes (
  id INTEGER PRIMARY KEY, problem INTEGER NOT NULL REFERENCES problems (id),
  target TEXT NOT NULL, toolchain TEXT NOT NULL,
  UNIQUE (problem, target, toolchain)
) STRICT;
CREATE TABLE runs (
  id INTEGER PRIMARY KEY, scope INTEGER NOT NULL REFERENCES scopes (id),
  config TEXT NOT NULL, seed INTEGER NOT NULL, started_utc_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE run_ends (
  id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs (id),
  ended_utc_ms INTEGER NOT NULL, reason TEXT NOT NULL
) STRICT;
CREATE TABLE nodes (
  id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs (id),
  scope INTEGER NOT NULL REFERENCES scopes (id), step INTEGER NOT NULL,
  kind TEXT NOT NULL, memory TEXT NOT NULL, proposer TEXT NOT NULL, note TEXT NOT NULL,
  source_digest BLOB NOT NULL, normalised_digest BLOB NOT NULL,
  source TEXT NOT NULL, plan TEXT NOT NULL,
  UNIQUE (run, step)
) STRICT;
CREATE TABLE edges (
  child INTEGER NOT NULL REFERENCES nodes (id), position INTEGER NOT NULL,
  parent INTEGER NOT NULL REFERENCES nodes (id),
  PRIMARY KEY (child, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE evaluations (
  id INTEGER PRIMARY KEY, node INTEGER NOT NULL REFERENCES nodes (id),
  run INTEGER NOT NULL REFERENCES runs (id), scope INTEGER NOT NULL REFERENCES scopes (id),
  effort TEXT NOT NULL, confirmed INTEGER NOT NULL,
  reused_from INTEGER REFERENCES evaluations (id),
  verdict TEXT NOT NULL, fitness REAL, evaluation TEXT NOT NULL
) STRICT;
CREATE TABLE statistics (
  id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs (id), step INTEGER NOT NULL,
  node INTEGER NOT NULL REFERENCES nodes (id), name TEXT NOT NULL, value REAL NOT NULL
) STRICT;

CREATE INDEX run_ends_by_run ON run_ends (run);
CREATE INDEX nodes_by_digest ON nodes (scope, normalised_digest);
CREATE INDEX edges_by_parent ON edges (parent);
CREATE INDEX evaluations_by_node ON evaluations (node);
CREATE INDEX evaluations_by_run ON evaluations (run, fitness);
CREATE INDEX evaluations_by_scope ON evaluations (scope, fitness);
CREATE INDEX statistics_by_run ON statistics (run, step);

CREATE TRIGGER keep_problems BEFORE UPDATE ON problems
  BEGIN SELECT RAISE (ABORT, 'rows are only inserted'); END;
CREATE TRIGGER keep_runs BEFORE UPDATE ON runs
  BEGIN SELECT RAISE (ABORT, 'rows are only inserted'); END;
CREATE TRIGGER keep_nodes BEFORE UPDATE ON nodes
  BEGIN SELECT RAISE (ABORT, 'rows are only inserted'); END;
CREATE TRIGGER keep_evaluations BEFORE UPDATE ON evaluations
  BEGIN SELECT RAISE (ABORT, 'rows are only inserted'); END;
CREATE TRIGGER keep_statistics BEFORE UPDATE ON statistics
  BEGIN SELECT RAISE (ABORT, 'rows are only inserted'); END;
)sql",
    R"sql(
CREATE TABLE texts (digest BLOB PRIMARY KEY, text TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE prompts (
  id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs (id), step INTEGER NOT NULL,
  consumed INTEGER NOT NULL, follows INTEGER REFERENCES prompts (id),
  style TEXT NOT NULL, model TEXT NOT NULL, kind TEXT NOT NULL, memory TEXT NOT NULL,
  parents TEXT NOT NULL, digest BLOB NOT NULL, stable BLOB NOT NULL REFERENCES texts (digest),
  request TEXT NOT NULL, ground TEXT NOT NULL
) STRICT;
CREATE TABLE answers (
  id INTEGER PRIMARY KEY, prompt INTEGER NOT NULL REFERENCES prompts (id),
  consumed INTEGER NOT NULL, early INTEGER NOT NULL, outcome TEXT NOT NULL, fault TEXT NOT NULL
) STRICT;
CREATE TABLE journal (
  id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs (id), kind TEXT NOT NULL,
  row INTEGER NOT NULL
) STRICT;
ALTER TABLE nodes ADD COLUMN prompt INTEGER REFERENCES prompts (id);
ALTER TABLE runs ADD COLUMN description BLOB REFERENCES texts (digest);

CREATE INDEX prompts_by_run ON prompts (run);
CREATE INDEX answers_by_prompt ON answers (prompt);
CREATE INDEX journal_by_run ON journal (run, id);

CREATE TRIGGER journal_node AFTER INSERT ON nodes
  BEGIN INSERT INTO journal (run, kind, row) VALUES (new.run, 'node', new.id); END;
CREATE TRIGGER journal_evaluation AFTER INSERT ON evaluations
  BEGIN INSERT INTO journal (run, kind, row) VALUES (new.run, 'evaluation', new.id); END;
CREATE TRIGGER journal_prompt AFTER INSERT ON prompts
  BEGIN INSERT INTO journal (run, kind, row) VALUES (new.run, 'prompt', new.id); END;
CREATE TRIGGER journal_answer AFTER INSERT ON answers
  BEGIN INSERT INTO journal (run, kind, row)
    SELECT run, 'answer', new.id FROM prompts WHERE id = new.prompt; END;
CREATE TRIGGER keep_prompts BEFORE UPDATE ON prompts
  BEGIN SELECT RAISE (ABORT, 'rows are only inserted'); END;
CREATE TRIGGER keep_answers BEFORE UPDATE ON answers
  BEGIN SELECT RAISE (ABORT, 'rows are only inserted'); END;
)sql",
};

inline constexpr int64_t kSchemaVersion = kMigrations.size();

}  // namespace ke
