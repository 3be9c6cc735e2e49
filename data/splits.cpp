#include "data/splits.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "core/hash.h"
#include "core/random.h"
#include "data/rows.h"
#include "data/text/tokenizer.h"

namespace ctk::data {
namespace {

using Hashes = std::vector<std::uint64_t>;

// Opens sources, sharing what those read that name the same arrays or images; hashes each source once.
class Opener {
 public:
  explicit Opener(std::span<const InputInfo> inputs) : inputs_(inputs) {}

  Result<std::shared_ptr<const Source>> open(const SourceSpec& spec) {
    std::shared_ptr<const Rows>& rows = opened_[key_of(spec)];
    if (!rows) {
      CTK_TRY(rows, open_rows(spec, inputs_));
    }
    CTK_TRY(std::unique_ptr<Source> source, open_source(spec, inputs_, rows));
    return std::shared_ptr<const Source>(std::move(source));
  }

  Result<const Hashes*> hashes(const std::shared_ptr<const Source>& source) {
    const auto known = hashes_.find(source);
    if (known != hashes_.end()) return &known->second;
    CTK_TRY(Hashes hashes, source->hashes());
    return &(hashes_[source] = std::move(hashes));
  }

 private:
  // All that a kind's reader looks at.
  static std::string key_of(const SourceSpec& spec) {
    std::error_code error;
    const auto path = std::filesystem::weakly_canonical(spec.path, error);
    Fingerprint key;
    key.add(error ? spec.path : path.string()).add(spec.labels).add(spec.split);
    key.add(static_cast<std::uint64_t>(spec.resize.value_or(0))).add(static_cast<std::uint64_t>(spec.crop.value_or(0)));
    for (const auto& [input, array] : spec.inputs) key.add(input).add(array);
    if (spec.text) {
      const TextSpec& text = *spec.text;
      key.add(static_cast<std::uint64_t>(text.context)).add(std::uint64_t{text.lines}).add(std::uint64_t{text.bos});
      key.add(std::uint64_t{text.pairs}).add(std::uint64_t{text.special_tokens});
      key.add(text.tokenizer ? text.tokenizer->fingerprint() : text.tokenizer_path);
    }
    return key.hex();
  }

  std::span<const InputInfo> inputs_;
  std::map<std::string, std::shared_ptr<const Rows>> opened_;
  std::map<std::shared_ptr<const Source>, Hashes> hashes_;
};

// A given split with the content hashes of its source's samples.
struct Given {
  Split* split;
  const Hashes* hashes;
};

std::string named(const Given& given, std::size_t index) {
  return given.split->role + " sample " + std::to_string(index) + " (" + given.split->source->where(index) + ")";
}

// Samples of `b` whose content `a` holds too, with the index of the first such sample in `a`.
struct Shared {
  std::size_t in_a, in_b;
};

std::vector<Shared> shared_by(const Given& a, const Given& b) {
  std::unordered_map<std::uint64_t, std::size_t> first;
  for (std::size_t index : a.split->indices) first.emplace((*a.hashes)[index], index);
  std::vector<Shared> shared;
  for (std::size_t index : b.split->indices) {
    const auto same = first.find((*b.hashes)[index]);
    if (same != first.end()) shared.push_back({same->second, index});
  }
  return shared;
}

// Keeps `other` free of samples of `test`. Data sets hold the same recording or picture twice: where both splits read
// other rows of one file, the user has split it right, and the copy leaves `other`. All else is a leak.
Status keep_apart(const Given& test, const Given& other, std::vector<Warning>& warnings) {
  const std::vector<Shared> shared = shared_by(test, other);
  if (shared.empty()) return {};
  std::error_code error;
  bool is_copy = std::filesystem::equivalent(test.split->path(), other.split->path(), error) &&
                 shared.size() < other.split->count();
  std::unordered_set<std::string> rows;
  for (std::size_t index : test.split->indices) rows.insert(test.split->source->where(index));
  for (const Shared& pair : shared) is_copy = is_copy && !rows.contains(other.split->source->where(pair.in_b));
  const std::string first = named(other, shared[0].in_b) + " and " + named(test, shared[0].in_a);
  const std::string count = std::to_string(shared.size());
  if (!is_copy)
    return input_error("data: expected no sample of evaluate (" + test.split->path() + ") in another split, found " +
                       count + " in " + other.split->role + " (" + other.split->path() + ") by content, the first: " +
                       first + ". Choose other samples (skip, samples), or another file.");
  std::unordered_set<std::size_t> dropped;
  for (const Shared& pair : shared) dropped.insert(pair.in_b);
  std::erase_if(other.split->indices, [&](std::size_t index) { return dropped.contains(index); });
  warnings.push_back(
      {"split_copies", other.split->role + ": " + count +
                           " samples left out, the file holds them again in evaluate, the first: " + first});
  return {};
}

Status check_overlaps(const std::vector<Given>& given, std::vector<Warning>& warnings) {
  if (!given.empty() && given.back().split->role == "test")
    for (std::size_t k = 0; k + 1 < given.size(); ++k) CTK_CHECK(keep_apart(given.back(), given[k], warnings));
  for (std::size_t b = 0; b < given.size(); ++b)
    for (std::size_t a = 0; a < b; ++a) {
      const std::vector<Shared> shared = shared_by(given[a], given[b]);
      if (!shared.empty())
        warnings.push_back({"split_overlap", given[a].split->role + " and " + given[b].split->role + " share " +
                                                 std::to_string(shared.size()) +
                                                 " samples by content, the first: " + named(given[a], shared[0].in_a) +
                                                 " and " + named(given[b], shared[0].in_b)});
    }
  return {};
}

struct Wish {
  std::string role;
  std::optional<Split>* split;
  std::size_t count;
};

// Samples that may be drawn: indices into a source, no two of one content. Keeps order.
struct Pool {
  std::shared_ptr<const Source> source;
  std::vector<std::size_t> indices;
  bool is_train = false;  // drawn from the train split itself

  std::size_t size() const { return indices.size(); }
};

Pool pool_of(std::shared_ptr<const Source> source, const Hashes& hashes, std::unordered_set<std::uint64_t> used) {
  Pool pool{std::move(source), {}};
  for (std::size_t i = 0; i < hashes.size(); ++i)
    if (used.insert(hashes[i]).second) pool.indices.push_back(i);
  return pool;
}

// The first of these that has `wished` samples, or the largest: rest of calibrate's file, rest of train's file, a
// quarter of the train split.
Result<Pool> choose_pool(const SplitRequest& request, const Splits& splits, const std::vector<Given>& given,
                         std::size_t wished, Opener& opener) {
  std::unordered_set<std::uint64_t> used, used_but_train;
  for (const Given& g : given)
    for (std::size_t index : g.split->indices) {
      used.insert((*g.hashes)[index]);
      if (g.split->role != "train") used_but_train.insert((*g.hashes)[index]);
    }
  Pool best;
  for (const auto* spec : {&request.calibrate, &request.train}) {
    if (!*spec) continue;
    SourceSpec whole = **spec;
    whole.skip = 0;
    whole.samples.reset();
    if (whole.text) whole.text->windows.reset();
    CTK_TRY(const std::shared_ptr<const Source> source, opener.open(whole));
    CTK_TRY(const Hashes* hashes, opener.hashes(source));
    Pool pool = pool_of(source, *hashes, used);
    if (!best.source || pool.size() > best.size()) best = std::move(pool);
    if (best.size() >= wished) return best;
  }
  if (!splits.train) return best;
  CTK_TRY(const Hashes* hashes, opener.hashes(splits.train->source));
  Pool pool = pool_of(splits.train->source, *hashes, used_but_train);
  const std::vector<std::size_t> order = Random(request.seed, "splits of train").permutation(pool.size());
  Pool quarter{pool.source, {}, true};
  for (std::size_t k = 0; k < std::min(order.size() / 4, wished); ++k)
    quarter.indices.push_back(pool.indices[order[k]]);
  return quarter.size() > best.size() ? quarter : best;
}

// Says so when a role gets less than was wished.
void tell_shortage(const Wish& wish, std::size_t share, const Pool& pool, std::vector<Warning>& warnings) {
  if (share == wish.count) return;
  if (!pool.source)
    warnings.push_back({"split_absent", wish.role +
                                            ": not given, and neither calibrate nor train is there to draw it from. " +
                                            "Add data." + wish.role});
  else if (share == 0)
    warnings.push_back({"split_absent", wish.role + ": not given, and every sample of " + pool.source->spec().path +
                                            " is in another split: none is left to draw. Add data." + wish.role});
  else
    warnings.push_back({"split_short", wish.role + ": " + std::to_string(share) + " samples drawn instead of " +
                                           std::to_string(wish.count) + ": no more are left in " +
                                           pool.source->spec().path});
}

// What was drawn from train leaves it, with every sample of the same content.
void shrink_train(Split& train, const Hashes& hashes, const std::unordered_set<std::uint64_t>& drawn,
                  std::vector<Warning>& warnings) {
  const std::size_t before = train.count();
  std::erase_if(train.indices, [&](std::size_t index) { return drawn.contains(hashes[index]); });
  warnings.push_back({"split_from_train", "train gives up " + std::to_string(before - train.count()) + " of " +
                                              std::to_string(before) + " samples to the splits drawn from it"});
}

Status draw(const std::vector<Wish>& wishes, const SplitRequest& request, const std::vector<Given>& given,
            Opener& opener, Splits& splits) {
  std::size_t wished = 0;
  for (const Wish& wish : wishes) wished += wish.count;
  CTK_TRY(const Pool pool, choose_pool(request, splits, given, wished, opener));
  const std::vector<std::size_t> order = Random(request.seed, "splits").permutation(pool.size());
  const Hashes none;
  const Hashes* hashes = &none;
  if (pool.source) {
    CTK_TRY(hashes, opener.hashes(pool.source));
  }
  std::unordered_set<std::uint64_t> drawn;
  std::size_t taken = 0;
  for (const Wish& wish : wishes) {
    std::size_t share = wish.count;
    if (pool.size() < wished)
      share = std::min(pool.size() - taken, std::max<std::size_t>(1, pool.size() * wish.count / wished));
    tell_shortage(wish, share, pool, splits.warnings);
    if (share == 0) continue;
    Split split{wish.role, pool.source, {}, "", true};
    for (std::size_t k = taken; k < taken + share; ++k) {
      split.indices.push_back(pool.indices[order[k]]);
      drawn.insert((*hashes)[split.indices.back()]);
    }
    taken += share;
    std::sort(split.indices.begin(), split.indices.end());
    *wish.split = std::move(split);
  }
  if (pool.is_train) shrink_train(*splits.train, *hashes, drawn, splits.warnings);
  return {};
}

void note_source(const Split& split, std::vector<Warning>& warnings) {
  const auto add = [&](Warning warning) {
    for (const Warning& known : warnings)
      if (known.text == warning.text) return;
    warnings.push_back(std::move(warning));
  };
  for (const std::string& note : split.source->notes()) add({"files_ignored", note});
  const auto& skipped = split.source->skipped();
  if (!skipped.empty())
    add({"samples_skipped",
         split.role + ": " + std::to_string(skipped.size()) + " bad samples skipped, the first " + skipped[0].where +
             (skipped[0].input.empty() ? "" : ", input '" + skipped[0].input + "'") + ": " + skipped[0].reason});
}

std::string fingerprint_of(const Split& split, const Hashes& hashes) {
  Fingerprint print;
  print.add(static_cast<std::uint64_t>(split.count()));
  for (std::size_t index : split.indices) {
    print.add(hashes[index]);
    if (split.source->has_labels()) print.add(static_cast<std::uint64_t>(split.source->label(index)));
  }
  return print.hex();
}

}  // namespace

std::vector<const Split*> Splits::all() const {
  std::vector<const Split*> result;
  for (const auto* split : {&train, &calibrate, &score, &select, &test})
    if (*split) result.push_back(&**split);
  return result;
}

Result<Splits> make_splits(const SplitRequest& request, std::span<const InputInfo> inputs) {
  struct Role {
    std::string name, key;
    const std::optional<SourceSpec>& spec;
    std::optional<Split> Splits::*split;
    std::size_t draw;
  };
  const Role roles[] = {{"train", "train", request.train, &Splits::train, 0},
                        {"calibrate", "calibrate", request.calibrate, &Splits::calibrate, request.draw_calibrate},
                        {"score", "score", request.score, &Splits::score, request.draw_score},
                        {"select", "select", request.select, &Splits::select, request.draw_select},
                        {"test", "evaluate", request.evaluate, &Splits::test, 0}};
  Opener opener(inputs);
  Splits splits;
  std::vector<Given> given;
  std::vector<Wish> wishes;
  for (const Role& role : roles) {
    std::optional<Split>& split = splits.*role.split;
    if (!role.spec) {
      if (role.draw != 0) wishes.push_back({role.name, &split, role.draw});
      continue;
    }
    Result<std::shared_ptr<const Source>> source = opener.open(*role.spec);
    if (!source) return std::move(source).error().with_context("data." + role.key);
    split = Split{role.name, *source, std::vector<std::size_t>((*source)->count()), "", false};
    std::iota(split->indices.begin(), split->indices.end(), std::size_t{0});
    Result<const Hashes*> hashes = opener.hashes(*source);
    if (!hashes) return std::move(hashes).error().with_context("data." + role.key);
    given.push_back({&*split, *hashes});
  }
  CTK_CHECK(check_overlaps(given, splits.warnings));
  if (!wishes.empty()) CTK_CHECK(draw(wishes, request, given, opener, splits));
  for (const Role& role : roles) {
    std::optional<Split>& split = splits.*role.split;
    if (!split) continue;
    CTK_TRY(const Hashes* hashes, opener.hashes(split->source));
    split->fingerprint = fingerprint_of(*split, *hashes);
    note_source(*split, splits.warnings);
  }
  return splits;
}

}  // namespace ctk::data
