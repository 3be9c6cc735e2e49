// kl: how much the outputs move when one layer alone takes one scheme.
// loss(layer, scheme) = mean over score samples of KL(softmax(float outputs) || softmax(outputs)), in nats.
// Cost: layers x schemes passes over the score split, with the integer kernels that will run the result. What is scored
// is kept at once, so that a stopped run goes on at the next layer. Ranks take one candidate each, again and again.
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
  Ranks& ranks = session.ranks();
  std::vector<const Candidate*> open;
  for (const Candidate& candidate : task.candidates) {
    if (task.store.find(candidate.address, to_string(candidate.scheme)) == nullptr) open.push_back(&candidate);
  }
  std::optional<OutputCache> reference;
  const auto size = static_cast<std::size_t>(ranks.size());
  for (std::size_t first = 0; first < open.size(); first += size) {
    session.advance(static_cast<std::int64_t>(task.candidates.size() - open.size() + first + 1));
    const std::size_t mine = first + static_cast<std::size_t>(ranks.rank());
    const auto score = [&]() -> Result<std::string> {
      if (mine >= open.size()) return encode({});
      if (!reference) {
        CTK_TRY(reference, collect_outputs(session.model.graph, *session.splits.score, session.output + "/.cache"));
      }
      CTK_TRY(const Score found, score_one(session, *open[mine], *reference));
      return encode({&found, 1});
    };
    CTK_TRY(const auto parts, ranks.gather_results("sensitivity", score()));
    for (const std::string& part : parts) {
      CTK_TRY(const std::vector<Score> found, decode(part));
      for (const Score& one : found) CTK_CHECK(task.store.add(one));
    }
  }
  if (!open.empty()) CTK_CHECK(task.store.save());
  std::vector<Score> scores;
  for (const Candidate& candidate : task.candidates) {
    scores.push_back(*task.store.find(candidate.address, to_string(candidate.scheme)));
  }
  return scores;
}

}  // namespace ctk::pipeline
