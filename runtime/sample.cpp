#include "runtime/sample.h"

#include <algorithm>
#include <cmath>

namespace ctk::runtime {

Status check_sampling(const Sampling& s) {
  if (!(s.temperature >= 0 && s.temperature <= 100)) {
    return config_error("temperature: expected a number from 0 to 100, found " + std::to_string(s.temperature) +
                        ". Use 0 for the likeliest token, 1 for the model's own distribution");
  }
  if (s.top_k < 0) {
    return config_error("top_k: expected 0 or more, found " + std::to_string(s.top_k) + ". Use 0 for all tokens");
  }
  if (!(s.top_p > 0 && s.top_p <= 1)) {
    return config_error("top_p: expected a number above 0 and at most 1, found " + std::to_string(s.top_p) +
                        ". Use 1 for all tokens");
  }
  return {};
}

Sampler::Sampler(const Sampling& sampling, std::size_t vocabulary)
    : sampling_(sampling), random_(sampling.seed, "sample") {
  if (sampling.temperature > 0) choices_.resize(vocabulary);
}

Result<std::int64_t> Sampler::pick(std::span<const float> logits) {
  std::size_t best = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!std::isfinite(logits[i])) {
      return input_error("expected finite logits, found " + std::to_string(logits[i]) + " for token " +
                         std::to_string(i) + ". The weights of the model are damaged");
    }
    if (logits[i] > logits[best]) best = i;
  }
  if (sampling_.temperature == 0) return static_cast<std::int64_t>(best);
  const double top = logits[best];
  for (std::size_t i = 0; i < logits.size(); ++i) {
    choices_[i] = {std::exp((static_cast<double>(logits[i]) - top) / sampling_.temperature),
                   static_cast<std::int64_t>(i)};
  }
  auto end = choices_.begin() + static_cast<std::ptrdiff_t>(logits.size());
  const auto goes_first = [](const Choice& a, const Choice& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
  };
  if (sampling_.top_k > 0 && sampling_.top_k < end - choices_.begin()) {
    const auto cut = choices_.begin() + sampling_.top_k;
    std::nth_element(choices_.begin(), cut, end, goes_first);
    end = cut;
  }
  double sum = 0;
  if (sampling_.top_p < 1) {
    for (auto c = choices_.begin(); c != end; ++c) sum += c->weight;
    // What is lighter than this cannot be needed: all such together stay below 1 - p.
    const double least = (1 - sampling_.top_p) * sum / static_cast<double>(end - choices_.begin());
    end = std::partition(choices_.begin(), end, [&](const Choice& c) { return c.weight >= least; });
    std::sort(choices_.begin(), end, goes_first);
    double reached = 0;
    auto last = choices_.begin();
    while (last != end && reached < sampling_.top_p * sum) reached += (last++)->weight;
    end = last;
  } else if (sampling_.top_k > 0) {
    std::sort(choices_.begin(), end, goes_first);  // nth_element leaves an order that is the library's own
  }
  sum = 0;
  for (auto c = choices_.begin(); c != end; ++c) sum += c->weight;
  double left = random_.uniform() * sum;
  for (auto c = choices_.begin(); c != end; ++c) {
    left -= c->weight;
    if (left < 0) return c->id;
  }
  return (end - 1)->id;  // rounding of the sum
}

}  // namespace ctk::runtime
