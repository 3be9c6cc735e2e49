#include "compress/prune/curves.h"

#include <algorithm>
#include <cmath>

#include "compress/evaluate.h"
#include "compress/interrupt.h"

namespace ctk::pruning {
namespace {

constexpr double kMacsOfAPoint = 2e10;
constexpr std::size_t kFewestSamples = 16;
constexpr std::size_t kSteps = 8;

// Widths to measure: about every eighth of the group, widest first, without the whole.
Widths measured_widths(const WidthTask& task, std::size_t group) {
  const Widths allowed = allowed_widths(task, group);
  const auto units = static_cast<double>(allowed[0]);
  Widths chosen;
  for (std::size_t step = 1; step < kSteps; ++step) {
    const double wish = units * (1.0 - static_cast<double>(step) / kSteps);
    const std::size_t nearest = *std::ranges::min_element(
        allowed, {}, [&](std::size_t width) { return std::abs(static_cast<double>(width) - wish); });
    if (nearest < allowed[0] && (chosen.empty() || nearest < chosen.back())) chosen.push_back(nearest);
  }
  if (allowed.size() > 1 && (chosen.empty() || allowed.back() < chosen.back())) chosen.push_back(allowed.back());
  return chosen;
}

// The allowed widths between two measured ones.
std::vector<CurvePoint> filled(const WidthTask& task, std::size_t group, const std::vector<CurvePoint>& measured) {
  std::vector<CurvePoint> curve;
  std::size_t next = 0;
  for (std::size_t width : allowed_widths(task, group)) {
    while (next + 1 < measured.size() && measured[next].width > width) ++next;
    const CurvePoint& low = measured[next];
    if (low.width == width || next == 0) {
      if (low.width == width) curve.push_back(low);
      continue;
    }
    const CurvePoint& high = measured[next - 1];
    const double share = static_cast<double>(high.width - width) / static_cast<double>(high.width - low.width);
    curve.push_back({width, high.loss + share * (low.loss - high.loss)});
  }
  return curve;
}

}  // namespace

Result<Curves> measure_curves(const WidthTask& task, const data::Split& split, const CurveOptions& options) {
  const graph::Coupling& coupling = task.coupling;
  data::Split part = split;
  const double affordable = kMacsOfAPoint / static_cast<double>(std::max<std::int64_t>(1, task.macs.whole()));
  const auto most = static_cast<std::size_t>(std::clamp(affordable, static_cast<double>(kFewestSamples), 1e9));
  if (part.indices.size() > most) part.indices.resize(most);
  const std::size_t batch = pipeline::fixed_batch(coupling.graph(), 1);
  if (part.indices.size() > batch) part.indices.resize(part.indices.size() / batch * batch);
  CTK_TRY(const pipeline::OutputCache reference, pipeline::collect_outputs(coupling.graph(), part, options.folder));
  std::size_t total = 0, done = 0;
  for (std::size_t g = 0; g < task.is_wanted.size(); ++g) {
    if (task.is_wanted[g]) total += measured_widths(task, g).size();
  }
  Curves curves(task.is_wanted.size());
  for (std::size_t g = 0; g < curves.size(); ++g) {
    if (!task.is_wanted[g]) continue;
    std::vector<CurvePoint> measured{{coupling.groups()[g].units.size(), 0.0}};
    for (std::size_t width : measured_widths(task, g)) {
      CTK_CHECK(check_interrupt());
      Widths widths = whole_widths(task);
      widths[g] = width;
      const graph::Coupling::Units removed = removed_by(task, widths);
      CTK_TRY(graph::Graph cut, coupling.cut(removed));
      if (options.repair != nullptr) repair_from_sums(coupling, removed, *options.repair, options.ridge, cut);
      CTK_TRY(const pipeline::Evaluation result, pipeline::evaluate(cut, part, "", &reference));
      measured.push_back({width, std::max(measured.back().loss, result.kl.value)});
      if (options.progress) options.progress(++done, total);
    }
    curves[g] = filled(task, g, measured);
  }
  return curves;
}

}  // namespace ctk::pruning
