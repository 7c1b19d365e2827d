// SPDX-License-Identifier: Apache-2.0
//
// What works on this machine, and what each missing tool would add.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/enum_names.hpp"
#include "base/json_fwd.hpp"
#include "base/result.hpp"
#include "domain/machine.hpp"
#include "eval/self_test.hpp"

namespace ke::app {

struct DoctorItem {
  enum class State : uint8_t { works, limited, missing };
  State state = State::works;
  std::string name;    // "PyTorch"
  std::string detail;  // version or figure, or what it would add
};

struct DoctorReport {
  MachineProfile machine;
  std::vector<DoctorItem> items;
  bool usable = true;  // optimize can work here
};

// Looks, and measures the machine profile when it is not cached (about two seconds) or when
// `remeasure` asks for it. cache: folder of the profile.
Result<DoctorReport> examine_machine(const std::filesystem::path& cache, bool remeasure);

std::string doctor_text(const DoctorReport& report);
Json encode(const DoctorReport& report);

struct JudgeExamination {
  std::vector<SelfTestOutcome> outcomes;
  int wrong = 0;
  std::string protections;  // of the rooms that the kernels ran in
};

// Has the judge place every kernel of its corpus, telling each outcome as it comes. About half a
// second a kernel. Errc::unavailable when no target has its toolchain.
Result<JudgeExamination> examine_judge(
    const std::function<void(const SelfTestOutcome& outcome)>& tell);

std::string outcome_text(const SelfTestOutcome& outcome);  // one line
Json encode(const JudgeExamination& examination);

}  // namespace ke::app

template <>
inline constexpr std::array<std::string_view, 3> ke::kEnumNames<ke::app::DoctorItem::State>{
    "works", "limited", "missing"};
