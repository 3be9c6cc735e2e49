#include "compress/search_files.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "compress/assignment.h"
#include "compress/loss_correction.h"
#include "compress/nearest_key.h"
#include "core/file.h"
#include "core/printable.h"

namespace ctk::pipeline::search_table {
namespace {

using nlohmann::json;

json figure(double value) {
  return std::isfinite(value) ? json(value) : json();
}

double limit_from(const json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::infinity();
}

json figures(const Limits& limits) {
  json line;
  for (const BudgetRow& budget : kBudgets) line[std::string(budget.name)] = figure(limits.*budget.of);
  return line;
}

// Phases are younger than the files: where a run does not know them, they are as in `absent`.
Limits figures_from(const json& line, const Limits& absent) {
  Limits limits = absent;
  for (const BudgetRow& budget : kBudgets) {
    const std::string name(budget.name);
    const bool is_young = budget.of == &Limits::decode || budget.of == &Limits::prefill;
    if (!is_young || line.contains(name)) limits.*budget.of = limit_from(line.at(name));
  }
  return limits;
}

json times_of(const Costs& costs) {
  json rows = json::array();
  for (const auto& [key, us] : costs) rows.push_back({{"layer", key.first}, {"scheme", key.second}, {"us", us}});
  return rows;
}

json phase_json(const PhaseCosts& costs) {
  return {{"fixed_us", costs.base_us}, {"layers", times_of(costs.us)}};
}

std::string in_quotes(const std::string& text) {
  return '"' + printable(text) + '"';
}

Error damaged(const std::string& file, const std::string& what, const std::string& remedy) {
  return input_error(file + ": " + what + ". " + remedy);
}

// "NaN in line 12", as programs write what JSON has no word for; empty where there is none.
std::string line_without_number(std::string_view text) {
  for (const std::string_view word : {": NaN", ": nan", ": Infinity", ": -Infinity", ": inf", ": -inf"}) {
    const std::size_t at = text.find(word);
    if (at == std::string_view::npos) continue;
    const std::size_t start = text.rfind('{', at);
    const std::string_view before = text.substr(start == std::string_view::npos ? at : start);
    const std::size_t line = 1 + static_cast<std::size_t>(std::ranges::count(text.substr(0, at), '\n'));
    return '"' + std::string(word.substr(2)) + "\" in line " + std::to_string(line) + ": " +
           printable(std::string(before.substr(0, before.find('}') + 1)));
  }
  return {};
}

Result<json> read_json(const std::string& path, const char* remedy) {
  auto file = MappedFile::open(path);
  if (!file) return std::move(file).error().with_context(remedy);
  const auto bytes = file->bytes();
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  json parsed = json::parse(text, text + bytes.size(), nullptr, false);
  if (parsed.is_discarded()) {
    if (const std::string line = line_without_number({text, bytes.size()}); !line.empty())
      return damaged(path, "expected finite numbers, found " + line,
                     "Score it again, or delete the line: the layer then does without this scheme");
    return damaged(path, "expected JSON, found text that is none", "Undo the edit, or run the pipeline again");
  }
  return parsed;
}

Error unknown_layer(const std::string& file, const std::string& layer, const std::set<std::string>& known) {
  std::vector<std::string_view> names(known.begin(), known.end());
  return damaged(file, "expected layers of this run, found " + in_quotes(layer) + did_you_mean(layer, names),
                 "Correct the name or delete its line");
}

std::set<std::string> layers_of(const Table& table) {
  std::set<std::string> known;
  for (const Group& group : table.groups) known.insert(group.layers.begin(), group.layers.end());
  return known;
}

Status read_losses(const std::string& path, Table& table) {
  CTK_TRY(const json file, read_json(path, "the losses that the sensitivity stage leaves"));
  const std::set<std::string> known = layers_of(table);
  if (!file.contains("scores") || !file["scores"].is_array())
    return damaged(path, "expected a list \"scores\", found none", "Run the pipeline again");
  for (const json& row : file["scores"]) {
    const std::string layer = row.value("layer", ""), scheme = row.value("scheme", "");
    if (!known.contains(layer)) return unknown_layer(path, layer, known);
    const json loss = row.value("loss", json());
    if (!loss.is_number() || !std::isfinite(loss.get<double>()))
      return damaged(path,
                     "layer " + in_quotes(layer) + ", scheme " + scheme + ": expected a finite number as loss, found " +
                         loss.dump(),
                     "Score it again, or delete the line: the layer then does without this scheme");
    table.loss[{layer, scheme}] = loss.get<double>();
    table.loss_error[{layer, scheme}] = row.value("standard_error", 0.0);
  }
  return {};
}

// What neighbours lose beyond their sums, where a run has measured some.
Status read_pairs(const std::string& path, Table& table) {
  if (!std::filesystem::exists(path)) return {};
  CTK_TRY(const json file, read_json(path, "what neighbours lose together"));
  const std::set<std::string> known = layers_of(table);
  for (const json& row : file) {
    PairLoss pair{row.at("first"),         row.at("first_scheme"), row.at("second"),
                  row.at("second_scheme"), row.at("sum"),          row.at("together")};
    for (const std::string& layer : {pair.first, pair.second}) {
      if (!known.contains(layer)) return unknown_layer(path, layer, known);
    }
    if (pair.first == pair.second)
      return damaged(path, "expected two layers, found " + in_quotes(pair.first) + " twice", "Delete the line");
    table.pairs.push_back(std::move(pair));
  }
  return {};
}

// What coded networks of the run put right (loss_correction.h): losses are worth so much of what was scored.
Status read_corrections(const std::string& path, Table& table) {
  if (!std::filesystem::exists(path)) return {};
  CTK_TRY(const json file, read_json(path, "what losses were put right by"));
  Correction correction{file.at("scale"), {}};
  for (const json& row : file.at("layers")) correction.gains[{row.at("layer"), row.at("scheme")}] = row.at("gain");
  table = corrected(table, correction);
  return {};
}

// Choices that every layer of a group has a score for; float needs none.
void keep_scored(Table& table) {
  for (Group& group : table.groups) {
    std::erase_if(group.choices, [&](const QuantScheme& scheme) {
      return !(scheme == QuantScheme{}) && std::ranges::any_of(group.layers, [&](const std::string& layer) {
        return !table.loss.contains({layer, to_string(scheme)});
      });
    });
    if (group.choices.empty()) group.choices.push_back({});
  }
}

}  // namespace

json to_json(const SavedSearch& saved) {
  json groups = json::array(), pairs = json::array();
  for (const Group& group : saved.table.groups) {
    json choices = json::array();
    for (const QuantScheme& scheme : group.choices) {
      choices.push_back({{"scheme", to_string(scheme)},
                         {"bytes", group_cost(saved.table.bytes, group, scheme, false)},
                         {"packed", group_cost(saved.table.packed, group, scheme, true)},
                         {"bits", group_cost(saved.table.bits, group, scheme, false)}});
    }
    groups.push_back({{"layers", group.layers},
                      {"tie", group.tie},
                      {"float_bytes", group_cost(saved.table.bytes, group, {}, false)},
                      {"float_bits", group_cost(saved.table.bits, group, {}, false)},
                      {"choices", std::move(choices)}});
  }
  for (const PairLoss& pair : saved.table.pairs) {
    pairs.push_back({{"first", pair.first},
                     {"first_scheme", pair.first_scheme},
                     {"second", pair.second},
                     {"second_scheme", pair.second_scheme},
                     {"sum", pair.sum},
                     {"together", pair.together}});
  }
  json files{{"costs",
              {{"groups", std::move(groups)},
               {"fixed", {{"bytes", saved.table.base_bytes}, {"peak_memory", saved.table.base_peak}}},
               {"missed", figures(saved.extra)},
               {"float", figures(saved.baseline)},
               {"limits", figures(saved.limit)}}}};
  if (!saved.cpu.empty()) {
    files["times"] = {
        {"cpu", saved.cpu}, {"fixed_us", saved.table.base_us}, {"layers", times_of(saved.table.latency_us)}};
    for (const Border& border : saved.table.borders) {
      files["times"]["borders"].push_back({{"first", border.first},
                                           {"second", border.second},
                                           {"to_floats_us", border.to_floats_us},
                                           {"to_codes_us", border.to_codes_us}});
    }
    if (!saved.table.decode.us.empty()) {
      files["times"]["decode"] = phase_json(saved.table.decode);
      files["times"]["prefill"] = phase_json(saved.table.prefill);
    }
  }
  if (!pairs.empty()) files["pairs"] = std::move(pairs);
  return files;
}

Status write_search_files(const json& files, const json& schemes, const std::string& folder) {
  const std::string to = folder + "/search";
  std::error_code error;
  std::filesystem::create_directories(to, error);
  if (error) return input_error(to + ": cannot be made: " + error.message());
  CTK_CHECK(write_file(to + "/assignment.json", schemes.dump(1) + "\n"));
  CTK_CHECK(write_file(to + "/costs.json", files["costs"].dump(1) + "\n"));
  for (const char* name : {"times", "pairs"}) {
    const std::string path = to + "/" + name + ".json";
    if (files.contains(name))
      CTK_CHECK(write_file(path, files[name].dump(1) + "\n"));
    else
      std::filesystem::remove(path, error);
  }
  std::filesystem::remove(to + "/corrections.json", error);  // of another network
  return {};
}

Result<SavedSearch> read_search_files(const std::string& folder, std::vector<std::string>& warnings) {
  SavedSearch saved;
  const std::string costs_path = folder + "/search/costs.json", times_path = folder + "/search/times.json";
  CTK_TRY(const json costs, read_json(costs_path, "expected the output folder of a run with a stage \"search\""));
  try {
    Table& table = saved.table;
    for (const json& line : costs.at("groups")) {
      Group group{line.at("layers"), {}, line.at("tie")};
      if (group.layers.empty())
        return damaged(costs_path, "expected layers in every group, found none", "Undo the edit");
      const auto add = [&](const std::string& scheme, double bytes, double packed, double bits) {
        table.bytes[{group.layers[0], scheme}] = bytes;
        table.packed[{group.layers[0], scheme}] = packed;
        table.bits[{group.layers[0], scheme}] = bits;
      };
      add(to_string(QuantScheme{}), line.at("float_bytes"), 0, line.at("float_bits"));
      for (const json& choice : line.at("choices")) {
        CTK_TRY(const QuantScheme scheme, parse_scheme(choice.at("scheme").get<std::string>()));
        group.choices.push_back(scheme);
        add(to_string(scheme), choice.at("bytes"), choice.at("packed"), choice.at("bits"));
      }
      table.groups.push_back(std::move(group));
    }
    table.base_bytes = costs.at("fixed").at("bytes");
    table.base_peak = costs.at("fixed").at("peak_memory");
    saved.extra = figures_from(costs.at("missed"), {});
    saved.baseline = figures_from(costs.at("float"), {});
    saved.limit = figures_from(costs.at("limits"), kNoLimits);
    CTK_CHECK(read_losses(folder + "/scores.json", table));
    keep_scored(table);
    CTK_CHECK(read_pairs(folder + "/search/pairs.json", table));
    CTK_CHECK(read_corrections(folder + "/search/corrections.json", table));
    if (std::filesystem::exists(times_path)) {
      CTK_TRY(const json times, read_json(times_path, "times of layers"));
      const std::set<std::string> known = layers_of(table);
      saved.cpu = times.at("cpu");
      table.base_us = times.at("fixed_us");
      const auto read_times = [&](const json& rows, Costs& into) {
        for (const json& row : rows) {
          const std::string layer = row.at("layer");
          if (!known.contains(layer)) {
            warnings.push_back(times_path + ": " + in_quotes(layer) +
                               " is no layer of this run; its times are left out");
            continue;
          }
          into[{layer, row.at("scheme")}] = row.at("us");
        }
      };
      read_times(times.at("layers"), table.latency_us);
      for (const json& row : times.value("borders", json::array()))
        table.borders.push_back({row.at("first"), row.at("second"), row.at("to_floats_us"), row.at("to_codes_us")});
      const std::pair<const char*, PhaseCosts*> phases[] = {{"decode", &table.decode}, {"prefill", &table.prefill}};
      for (const auto& [name, costs] : phases) {
        if (!times.contains(name)) continue;
        costs->base_us = times.at(name).at("fixed_us");
        read_times(times.at(name).at("layers"), costs->us);
      }
    }
  } catch (const json::exception& error) {
    const std::string what = error.what();  // "[json.exception.out_of_range.403] key 'bytes' not found"
    return damaged(folder + "/search",
                   "expected the keys that a run of this version writes, found: " + what.substr(what.find(' ') + 1),
                   "Undo the edit, or run the pipeline again");
  }
  return saved;
}

Result<std::vector<std::size_t>> read_assignment(const std::string& path, Table& table) {
  CTK_TRY(const auto schemes, read_schemes(path));
  const std::set<std::string> known = layers_of(table);
  for (const auto& [layer, scheme] : schemes) {
    if (!known.contains(layer)) return unknown_layer(path, layer, known);
  }
  std::vector<std::size_t> choices;
  for (Group& group : table.groups) {
    std::optional<std::string> wanted;
    for (const std::string& layer : group.layers) {
      const auto named = schemes.find(layer);
      const std::string scheme = to_string(named == schemes.end() ? QuantScheme{} : named->second);
      if (wanted && *wanted != scheme)
        return damaged(path,
                       in_quotes(layer) + ": expected " + *wanted + ", since it must " + group.tie + " with " +
                           in_quotes(group.layers[0]) + ", found " + scheme,
                       "Give both one scheme, or run with groups: none");
      wanted = scheme;
    }
    const bool has_float = std::ranges::find(group.choices, QuantScheme{}) != group.choices.end();
    if (*wanted == to_string(QuantScheme{}) && !has_float) group.choices.push_back({});
    const auto at = std::ranges::find(group.choices, *wanted, [](const QuantScheme& s) { return to_string(s); });
    if (at == group.choices.end()) {
      std::string list;
      for (const QuantScheme& scheme : group.choices) list += (list.empty() ? "" : ", ") + to_string(scheme);
      return damaged(path, in_quotes(group.layers[0]) + ": expected one of " + list + ", found " + in_quotes(*wanted),
                     "Correct the scheme");
    }
    choices.push_back(static_cast<std::size_t>(at - group.choices.begin()));
  }
  return choices;
}

}  // namespace ctk::pipeline::search_table
