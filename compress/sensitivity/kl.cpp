// kl: how much the outputs move when one layer alone takes one scheme.
// loss(layer, scheme) = mean over score samples of KL(softmax(float outputs) || softmax(outputs)), in nats.
// Cost: layers x schemes passes over the score split, with the integer kernels that will run the result. What is scored
// is kept at once, so that a stopped run goes on at the next layer. Ranks take one candidate each, again and again.
#include "compress/sensitivity/metrics.h"
#include "compress/sensitivity/score_store.h"

namespace ctk::pipeline {

Result<data::MetricValue> kl_of(const Session& session, const quantization::SchemeMap& schemes,
                                std::optional<OutputCache>& reference) {
  const data::Split& split = *session.splits.score;
  if (!reference) {
    CTK_TRY(reference, collect_outputs(session.model.graph, split, session.output + "/.cache"));
  }
  graph::Graph changed = session.model.graph.clone();
  CTK_CHECK(quantization::apply_schemes(changed, schemes, session.ranges, session.plain_options()));
  CTK_TRY(const Evaluation result, evaluate(changed, split, "", &*reference));
  return result.kl;
}

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
      const Candidate& candidate = *open[mine];
      CTK_TRY(const data::MetricValue kl, kl_of(session, {{candidate.address, candidate.scheme}}, reference));
      const Score found{candidate.address, to_string(candidate.scheme), kl.value, kl.standard_error};
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
