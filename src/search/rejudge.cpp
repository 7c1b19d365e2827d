// SPDX-License-Identifier: Apache-2.0
#include "base/json.hpp"
#include "search/replay.hpp"

namespace ke {

Result<std::vector<OtherVerdict>> judge_again(const Recording& recording, Evaluator& evaluator,
                                              EventSink& events, std::stop_token stop) {
  std::vector<OtherVerdict> others;
  for (const auto& [id, recorded] : recording.evaluations) {
    if (recorded.effort != enum_name(Effort::screen)) continue;
    if (stop.stop_requested()) {
      return Error{Errc::unavailable, "stopped before every kernel was judged again"};
    }
    const NodeRow& node = recording.nodes.at(recorded.node);
    const Artifact artifact = TRY(evaluator.build(node.source));
    // Only a verdict about its time needs a kernel to be timed.
    const bool timed = recorded.evaluation.verdict == Verdict::implausible_time;
    const Evaluation now = artifact.failure
                               ? *artifact.failure
                               : TRY(evaluator.judge(artifact, {.measure = timed}));
    events.emit("step.finished", {{"step", node.step},
                                  {"node", node.id.value},
                                  {"proposer", node.proposer},
                                  {"verdict", enum_name(now.verdict)}});
    if (now.verdict == recorded.evaluation.verdict) continue;
    others.push_back({node.id, recorded.evaluation.verdict, now.verdict, now.detail});
  }
  return others;
}

}  // namespace ke
