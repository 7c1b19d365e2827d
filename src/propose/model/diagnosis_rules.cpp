// SPDX-License-Identifier: Apache-2.0
//
// What to do next, by rule. Every row says when it holds, what it asks for and why that helps. The
// order is that of the prompt: what must be mended, then what promises most.
#include <algorithm>
#include <array>

#include "propose/model/diagnosis.hpp"

namespace ke::model {
namespace {

constexpr double kExtraTraffic = 1.3;  // times the least traffic: a fusion is worth a look
constexpr int kStalledFrom = 3;        // children without a gain
constexpr int kRepeatedFrom = 2;       // children rejected for the same reason

bool says(const Facts& facts, std::string_view words) {
  return facts.evaluation != nullptr &&
         facts.evaluation->detail.find(words) != std::string::npos;
}

bool wrong(const Facts& facts) { return facts.rejected_as(Verdict::wrong_output); }
bool unwritten(const Facts& facts) { return wrong(facts) && says(facts, "never written"); }
bool strange(const Facts& facts) { return wrong(facts) && says(facts, "not finite"); }
bool imprecise(const Facts& facts) { return wrong(facts) && says(facts, "within the tolerance"); }
bool exact_elsewhere(const Facts& facts) {
  return wrong(facts) && !unwritten(facts) && !strange(facts) && !imprecise(facts);
}
bool lacks_entry(const Facts& facts) {
  return facts.rejected_as(Verdict::compile_error) && says(facts, "ke_launch");
}
bool compile_error(const Facts& facts) {
  return facts.rejected_as(Verdict::compile_error) && !lacks_entry(facts);
}

template <Verdict verdict>
bool rejected(const Facts& facts) {
  return facts.rejected_as(verdict);
}

// Its own parent was accepted: the last change broke it.
bool broke_a_good_kernel(const Facts& facts) {
  const bool failed = facts.evaluation != nullptr && !facts.accepted();
  if (!failed || facts.history.trajectory.size() < 2) return false;
  const Attempt& before = facts.history.trajectory[1];
  return before.evaluation && before.evaluation->verdict == Verdict::accepted;
}

bool is_bound(const Facts& facts, std::string_view bound) { return bound_of(facts) == bound; }
bool near_floor(const Facts& facts) { return facts.near_floor(); }
bool extra_traffic(const Facts& facts) {
  return facts.accepted() && facts.plan_kernels > 1 && facts.plan_bytes && facts.roof.bytes > 0 &&
         *facts.plan_bytes >= kExtraTraffic * facts.roof.bytes;
}
bool one_thread(const Facts& facts) {
  const auto uses = [&](std::string_view word) {
    return facts.source.find(word) != std::string_view::npos;
  };
  return facts.accepted() && facts.machine->threads > 1 && !uses("parallel_for") &&
         !uses("pragma omp") && !uses("thread") && !facts.has_flag("too_small");
}
bool scalar_loop(const Facts& facts) {
  const KernelProfile* p = facts.profile;
  return p != nullptr && p->vector_instructions && p->scalar_instructions &&
         *p->scalar_instructions > *p->vector_instructions;
}
bool spills(const Facts& facts) {
  return facts.profile != nullptr && facts.profile->spills.value_or(0) > 0;
}
bool slower_than_baseline(const Facts& facts) {
  return facts.time_ns() && facts.evaluation->measurement->speedup < 1 && !facts.has_flag("tie");
}
bool tied(const Facts& facts) { return facts.accepted() && facts.has_flag("tie"); }

bool stalled(const Facts& facts) {
  const auto without_gain = std::ranges::count_if(facts.history.siblings, [](const Attempt& one) {
    return one.effect == Effect::same || one.effect == Effect::slower;
  });
  const bool gained =
      std::ranges::any_of(facts.history.siblings,
                          [](const Attempt& one) { return one.effect == Effect::faster; });
  return !gained && without_gain >= kStalledFrom;
}

bool same_mistake(const Facts& facts) {
  std::array<int, kEnumNames<Verdict>.size()> counts{};
  for (const Attempt& one : facts.history.siblings) {
    if (one.evaluation) ++counts[static_cast<size_t>(one.evaluation->verdict)];
  }
  counts[static_cast<size_t>(Verdict::accepted)] = 0;
  return std::ranges::any_of(counts, [](int count) { return count >= kRepeatedFrom; });
}

bool sibling_gained(const Facts& facts) {
  return std::ranges::any_of(facts.history.siblings,
                             [](const Attempt& one) { return one.effect == Effect::faster; });
}

constexpr Rule kRules[] = {  // tidy: allow(function) because it is a table, not code
    {"entry", lacks_entry,
     "Define ke_launch with C linkage and exactly the contract's signature.",
     "Nothing else of the source was looked at."},
    {"compile", compile_error,
     "Make it compile: mend the first error and change nothing else on the way.",
     "Later errors mostly follow from the first."},
    {"crash", rejected<Verdict::crashed>,
     "Check every index against its extent, let no exception out, return 0, and keep large arrays "
     "off the stack.",
     "It ended by a signal, an exception or a non-zero return."},
    {"time", rejected<Verdict::timed_out>,
     "Look for a loop that does not end and for work that grows faster than the data.",
     "It was still running at a limit far above the baseline's time."},
    {"unwritten", unwritten,
     "Write every element of every output: handle the rest that fills no whole vector or tile, and "
     "every task of the parallel loop.",
     "Outputs arrive with arbitrary contents, and some kept them."},
    {"strange", strange,
     "Find what makes a value infinite or NaN, or unequal where equality is asked: subtract the "
     "maximum before an exponential, start reductions from their neutral element, let NaN pass "
     "through maxima.",
     "The wrong values are of another kind, not merely inexact."},
    {"precision", imprecise,
     "Lose less precision: add in several partial sums or in double, avoid approximate reciprocals "
     "and narrow intermediate types.",
     "Each element is close, but the error over all is beyond 8 times PyTorch's own."},
    {"wrong", exact_elsewhere,
     "Go through the index arithmetic against the graph: the order of the inputs, strides, "
     "reduction axes, broadcasting, and constants.",
     "The values are wrong beyond rounding."},
    {"bounds", rejected<Verdict::out_of_bounds>,
     "Read and write only elements below each tensor's extent; use a masked or scalar loop for the "
     "rest that fills no whole vector.",
     "Memory beside every tensor is guarded."},
    {"inputs", rejected<Verdict::input_mutated>,
     "Copy what you want to change into scratch.", "Inputs are read-only."},
    {"deterministic", rejected<Verdict::nondeterministic>,
     "Add in an order that does not depend on which thread is first, keep no state between calls, "
     "and read no memory that this call has not written.",
     "Two calls with the same inputs must agree bit for bit."},
    {"policy", rejected<Verdict::policy_violation>,
     "Use the language and its own run time alone: no other library, file, process or system call, "
     "and only the flags that are allowed.",
     "The policy forbids what it did."},
    {"implausible", rejected<Verdict::implausible_time>,
     "Do all the work inside every call.", "It was faster than the data can move."},
    {"back", broke_a_good_kernel,
     "If the cause is not plain, go back to what its parent did and make the change in a smaller "
     "step.",
     "The kernel it was made from is right."},
    {"near-floor", near_floor,
     "Only move fewer bytes or do fewer operations; leave the rest as it is.",
     "It is within a quarter of what the hardware permits."},
    {"fuse", extra_traffic,
     "Fuse kernels so that intermediate tensors stay in registers or in the cache.",
     "Kernels pass each other data through memory that need not go there."},
    {"threads", one_thread,
     "Split the outermost loop over context->parallel_for in tasks of equal size.",
     "The machine has more threads than the kernel uses."},
    {"vectorise", scalar_loop,
     "Make the hot loop a vector loop: contiguous innermost accesses, no call or branch inside, "
     "several accumulators, or explicit vectors.",
     "Most of its floating arithmetic is scalar."},
    {"spill", spills,
     "Keep fewer values alive in the hot loop: a smaller tile or less unrolling.",
     "Values go to the stack and back in every iteration."},
    {"memory", [](const Facts& f) { return is_bound(f, "memory") && !f.near_floor(); },
     "Use the bandwidth: touch every byte once and in order, use all threads, keep what is used "
     "again in the cache by blocking, and try non-temporal stores for large outputs.",
     "Memory is the unit that is busy most."},
    {"compute", [](const Facts& f) { return is_bound(f, "compute") && !f.near_floor(); },
     "Use the arithmetic units: full-width multiply-adds on a register tile with enough "
     "independent accumulators, operands packed so that loads are contiguous.",
     "Arithmetic is the unit that is busy most."},
    {"latency", [](const Facts& f) { return is_bound(f, "latency"); },
     "Find what everybody waits for: dependent chains (use several accumulators), scalar code (use "
     "vectors), expensive functions, unequal shares of the threads, or passes over data that one "
     "pass could save.",
     "Neither memory nor arithmetic is busy for half of the time."},
    {"overhead", [](const Facts& f) { return is_bound(f, "overhead"); },
     "Do less beside the work: one parallel loop or none, no allocation, no work on shapes inside "
     "loops.",
     "The call is so short that starting threads counts."},
    {"behind", slower_than_baseline,
     "Think of another algorithm or another split of the work before tuning numbers.",
     "It is slower than the better of eager PyTorch and torch.compile."},
    {"tie", tied, "Change something that matters more than a few percent.",
     "It cannot be told apart from the baseline."},
    {"stalled", stalled,
     "Change the structure (fusion, loop order, data layout, algorithm) instead of its numbers.",
     "Several changes of this kernel gained nothing."},
    {"repeated", same_mistake,
     "Do not repeat what the rejected attempts have in common.",
     "Several attempts were rejected for the same reason."},
    {"build-on", sibling_gained,
     "Combine your change with what the faster attempts did, or do something independent of it.",
     "Attempts beside this one gained."},
    {"cross", [](const Facts& f) { return f.kind == NodeKind::cross; },
     "Take from the second kernel what makes it good and the first one lacks.",
     "Both were accepted, each for its own merits."},
    {"draft", [](const Facts& f) { return f.kind == NodeKind::draft; },
     "Begin with the simplest kernel that is right and fused into as few passes over memory as "
     "possible, vectorised and spread over all threads.",
     "A right kernel can be improved; a wrong one tells little."},
};

}  // namespace

std::span<const Rule> rules() { return kRules; }

}  // namespace ke::model
