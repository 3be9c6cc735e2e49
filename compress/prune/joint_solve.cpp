#include <algorithm>

#include "compress/prune/joint.h"
#include "search/solvers/solvers.h"

namespace ctk::pruning {
namespace {

// A width of a group with schemes for some of its layers.
struct Part {
  std::size_t level = 0;
  std::vector<std::size_t> schemes;  // of the layers so far
  double loss = 0, size = 0, latency = 0;
};

bool is_no_worse(const Part& a, const Part& b) {
  return a.loss <= b.loss && a.size <= b.size && a.latency <= b.latency;
}

// Without parts that an earlier or a better one makes needless: what comes on top is the same for all.
std::vector<Part> undominated(std::vector<Part> parts) {
  std::ranges::stable_sort(parts, {}, &Part::loss);
  std::vector<Part> kept;
  for (Part& part : parts) {
    if (std::ranges::none_of(kept, [&](const Part& other) { return is_no_worse(other, part); }))
      kept.push_back(std::move(part));
  }
  return kept;
}

std::vector<Part> parts_of(const std::vector<CurvePoint>& levels, const std::vector<const JointLayer*>& layers,
                           std::optional<std::size_t> only) {
  std::vector<Part> parts;
  for (std::size_t level = 0; level < levels.size(); ++level) {
    if (only && *only != level) continue;
    parts.push_back({level, {}, levels[level].loss, 0, 0});
  }
  for (const JointLayer* layer : layers) {
    std::vector<Part> longer;
    for (const Part& part : parts) {
      const std::size_t at = std::min(part.level, layer->size.size() - 1);
      for (std::size_t s = 0; s < layer->loss.size(); ++s) {
        Part next = part;
        next.schemes.push_back(s);
        next.loss += layer->loss[s];
        next.size += layer->size[at][s];
        next.latency += layer->latency[at][s];
        longer.push_back(std::move(next));
      }
    }
    // Widths are told apart until all layers are in: layers to come cost by width.
    parts.clear();
    for (std::size_t level = 0; level < levels.size(); ++level) {
      std::vector<Part> same;
      std::ranges::copy_if(longer, std::back_inserter(same), [&](const Part& part) { return part.level == level; });
      std::ranges::move(undominated(std::move(same)), std::back_inserter(parts));
    }
  }
  return undominated(std::move(parts));
}

}  // namespace

Result<JointChoice> solve_joint(const JointProgramme& programme, const std::vector<std::size_t>& only) {
  struct Block {
    std::optional<std::size_t> group;
    std::vector<std::size_t> layers;
    std::vector<Part> parts;
  };
  std::vector<Block> blocks(programme.levels.size());
  for (std::size_t g = 0; g < blocks.size(); ++g) blocks[g].group = g;
  for (std::size_t l = 0; l < programme.layers.size(); ++l) {
    if (const auto group = programme.layers[l].group)
      blocks[*group].layers.push_back(l);
    else
      blocks.push_back({std::nullopt, {l}, {}});
  }
  search::Problem problem;
  problem.budgets = {{"size", programme.size_limit, programme.fixed_size, "B"},
                     {"latency", programme.latency_limit, programme.fixed_latency, "us"}};
  const std::vector<CurvePoint> whole{{}};
  for (Block& block : blocks) {
    std::vector<const JointLayer*> layers;
    for (const std::size_t l : block.layers) layers.push_back(&programme.layers[l]);
    std::optional<std::size_t> given;
    if (block.group && !only.empty()) given = only[*block.group];
    block.parts = parts_of(block.group ? programme.levels[*block.group] : whole, layers, given);
    search::Item item{block.layers.empty() ? "channels" : layers[0]->name, {}};
    for (const Part& part : block.parts) {
      std::string name = block.group ? std::to_string(programme.levels[*block.group][part.level].width) : "";
      for (std::size_t i = 0; i < part.schemes.size(); ++i)
        name += (name.empty() ? "" : " ") + layers[i]->schemes[part.schemes[i]];
      item.choices.push_back({std::move(name), part.loss, {part.size, part.latency}});
    }
    problem.items.push_back(std::move(item));
  }
  CTK_TRY(const search::Solver* solver, search::find_solver("ilp"));
  CTK_TRY(const search::Assignment answer, solver->solve(problem));
  JointChoice choice{std::vector<std::size_t>(programme.levels.size()),
                     std::vector<std::size_t>(programme.layers.size()), answer.loss, answer.costs[0], answer.costs[1]};
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const Part& part = blocks[b].parts[answer.choices[b]];
    if (blocks[b].group) choice.levels[*blocks[b].group] = part.level;
    for (std::size_t i = 0; i < part.schemes.size(); ++i) choice.schemes[blocks[b].layers[i]] = part.schemes[i];
  }
  return choice;
}

}  // namespace ctk::pruning
