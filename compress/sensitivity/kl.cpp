// kl: how much the outputs move when one layer alone takes one scheme.
// loss(layer, scheme) = mean over score samples of KL(softmax(float outputs) || softmax(outputs)), in nats.
// Cost: layers x schemes passes over the score split, with the integer kernels that will run the result. What is scored
// is kept at once, so that a stopped run goes on at the next layer.
#include "compress/sensitivity/metrics.h"
#include "compress/sensitivity/score_store.h"

namespace ctk::pipeline {
namespace {

Result<Score> score_one(Session& session, const Candidate& candidate, const OutputCache& reference) {
  graph::Graph changed = session.model.graph.clone();
  CTK_CHECK(quantization::apply_schemes(changed, {{candidate.address, candidate.scheme}}, session.ranges,
                                        session.plain_options()));
  CTK_TRY(const Evaluation result, evaluate(changed, *session.splits.score, "", &reference));
  return Score{candidate.address, to_string(candidate.scheme), result.kl.value, result.kl.standard_error};
}

}  // namespace

Result<std::vector<Score>> score_kl(const ScoreTask& task) {
  Session& session = task.session;
  std::optional<OutputCache> reference;
  std::vector<Score> scores;
  for (const Candidate& candidate : task.candidates) {
    session.advance(static_cast<std::int64_t>(scores.size() + 1));
    const std::string scheme = to_string(candidate.scheme);
    if (task.store.find(candidate.address, scheme) == nullptr) {
      if (!reference) {
        CTK_TRY(reference, collect_outputs(session.model.graph, *session.splits.score, session.output + "/.cache"));
      }
      CTK_TRY(Score score, score_one(session, candidate, *reference));
      CTK_CHECK(task.store.add(std::move(score)));
    }
    scores.push_back(*task.store.find(candidate.address, scheme));
  }
  if (reference) CTK_CHECK(task.store.save());
  return scores;
}

}  // namespace ctk::pipeline
