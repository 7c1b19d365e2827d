// SPDX-License-Identifier: Apache-2.0
//
// Every limit, named with its unit, in one table. Nobody has a constant of their own.
#pragma once

#include "base/units.hpp"

namespace ke {

struct Limits {
  Milliseconds compile_max{60'000};
  Milliseconds call_max{20'000};           // one kernel call, at least; grows with the baseline
  Milliseconds first_call_max{60'000};     // the first one of a Python module, which may compile
  Milliseconds python_start_max{120'000};  // interpreter and import of torch
  Milliseconds oracle_load_max{120'000};   // import, construction, export
  Milliseconds oracle_set_max{120'000};    // one input set with its truth
  Milliseconds compiled_baseline_max{300'000};  // wait for torch.compile before a full measurement
  int64_t runner_memory_bytes = 12_GiB;         // beyond the tensors that were handed in
  int64_t compile_memory_bytes = 4_GiB;
  int64_t oracle_memory_bytes = 20_GiB;
  int64_t scratch_bytes_max = 4_GiB;
  int64_t source_bytes_max = 4_MiB;
  int64_t diagnostic_bytes_max = 8_KiB;  // compiler output and the like, kept per evaluation
  int64_t truth_resident_bytes_max = 6_GiB;
  int32_t timing_sets_max = 64;
  int32_t shape_cases_max = 16;  // each takes a PyTorch process
  Milliseconds llm_connect_max{20'000};
  Milliseconds llm_idle_max{300'000};     // some models think that long before their first word
  Milliseconds llm_total_max{1'800'000};  // one answer, from the call to its end
  int64_t llm_answer_bytes_max = 16_MiB;
  Milliseconds mailbox_wait_max{7 * 24 * 3'600'000LL};  // for a person
  int32_t open_problems_max = 4;      // that an agent works on; each takes PyTorch processes
  int32_t waiting_requests_max = 64;  // of an agent, while one is worked on
  int64_t request_bytes_max = 8_MiB;  // one line of an agent: a source with every byte escaped
};

}  // namespace ke
