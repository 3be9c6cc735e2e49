#include "compress/target.h"

#include <algorithm>

#include "compress/config_schema.h"
#include "compress/nearest_key.h"
#include "core/file.h"

namespace ctk::pipeline {
namespace {

const KeyRow kRows[] = {
    {"name", ValueKind::text, 0, 0, "!", {}, "", "what reports call it"},
    {"kind", ValueKind::name, 0, 0, "!", NameKind::target, "", "cpu, gpu or npu"},
    {"threads", ValueKind::integer, 1, 1024, "", {}, "", "to run with"},
    {"schemes", ValueKind::scheme_list, 0, 0, "", {}, "", "it has kernels for; what it computes in comes first"},
    {"peak_gops", ValueKind::number, 1e-6, 1e12, "", {}, "", "10^9 operations a second"},
    {"bandwidth_gb_s", ValueKind::number, 1e-6, 1e9, "", {}, "", "of its own memory"},
    {"launch", ValueKind::latency, 0, 0, "", {}, "", "of a segment of nodes"},
    {"transfer_start", ValueKind::latency, 0, 0, "", {}, "", "of moving one value to it or back"},
    {"transfer_gb_s", ValueKind::number, 1e-6, 1e9, "", {}, "", "of moving values"},
    {"transfer_flush", ValueKind::latency, 0, 0, "", {}, "", "of caches, with each value"},
    {"shared_memory", ValueKind::boolean, 0, 0, "", {}, "", "values are passed by pointer"},
    {"ops", ValueKind::text_list, 0, 0, "", {}, "", "operators it runs, by ONNX name"},
    {"array_rows", ValueKind::integer, 1, 1 << 16, "", {}, "", "multipliers along a sum; with it, an npu is simulated"},
    {"array_columns", ValueKind::integer, 1, 1 << 16, "", {}, "", "multipliers across outputs"},
    {"scratchpad", ValueKind::size, 0, 0, "", {}, "", "memory inside it"},
    {"clock_mhz", ValueKind::number, 1e-3, 1e6, "", {}, "", "cycles a microsecond"},
    {"mac_cycles", ValueKind::integer, 1, 1 << 20, "", {}, "", "of one pixel in a pass of the array"},
    {"mac_start_cycles", ValueKind::integer, 0, 1 << 20, "", {}, "", "before a pass gives its first sum"},
    {"requantize_per_cycle", ValueKind::integer, 1, 1 << 20, "", {}, "", "sums turned to codes"},
    {"dma_start_cycles", ValueKind::integer, 0, 1 << 20, "", {}, "", "of one move to or from the scratchpad"},
};

// What a simulated npu cannot do without, once one of them is there.
constexpr const char* kMachine[] = {"array_rows", "array_columns",        "scratchpad",
                                    "clock_mhz",  "requantize_per_cycle", "dma_start_cycles"};

std::span<const std::string_view> known_ops() {
  static constexpr std::string_view kOps[] = {
#define CTK_OP(name) #name,
#include "graph/ops.def"
#undef CTK_OP
  };
  return kOps;
}

// What a bound is made of. A processor's may be left out: they are measured.
void check_figures(const CheckedValues& values, const std::string& path, std::vector<Problem>& problems) {
  const auto* kind = values.get<std::string>("kind");
  if (kind == nullptr || (*kind == "cpu" && !values.has("bandwidth_gb_s"))) return;
  for (const char* required : {"peak_gops", "bandwidth_gb_s"}) {
    if (values.has(required)) continue;
    problems.push_back({path + ":1", required,
                        std::string("expected the key \"") + required + "\" for an estimate, found none. Add it."});
  }
}

// What a partition cannot do without.
void check_accelerator(const CheckedValues& values, const std::string& path, std::vector<Problem>& problems) {
  const auto* kind = values.get<std::string>("kind");
  if (kind == nullptr || *kind == "cpu") return;
  const auto* shared = values.get<bool>("shared_memory");
  for (const char* required : {"peak_gops", "bandwidth_gb_s", "ops", "transfer_gb_s"}) {
    const bool is_moving = std::string_view(required) == "transfer_gb_s";
    if (values.has(required) || (is_moving && shared != nullptr && *shared)) continue;
    problems.push_back({path + ":1", required,
                        std::string("expected the key \"") + required + "\" for a card of kind " + *kind +
                            ", found none. Add it" + (is_moving ? ", or shared_memory: true." : ".")});
  }
  for (const char* time : {"launch", "transfer_start", "transfer_flush"}) {
    const auto* limit = values.get<Limit>(time);
    if (limit == nullptr || !limit->is_share) continue;
    problems.push_back(
        {values.values.at(time).where, time, "expected a time like \"20 us\", found a share. Give a time."});
  }
  if (const auto* ops = values.get<std::vector<std::string>>("ops")) {
    for (const std::string& op : *ops) {
      if (std::ranges::count(known_ops(), op) != 0) continue;
      problems.push_back(
          {values.values.at("ops").where, "ops",
           "expected names of ONNX operators, found \"" + op + "\"" + did_you_mean(op, known_ops()) + "."});
    }
  }
}

void check_machine(const CheckedValues& values, const std::string& path, std::vector<Problem>& problems) {
  const auto is_there = [&](const char* key) { return values.has(key); };
  if (std::ranges::none_of(kMachine, is_there) && !values.has("mac_cycles") && !values.has("mac_start_cycles")) return;
  const auto* kind = values.get<std::string>("kind");
  if (kind != nullptr && *kind != "npu") {
    problems.push_back(
        {path + ":1", "kind",
         "expected npu beside the figures of an array, found " + *kind + ". Remove the figures, or describe an npu."});
  }
  for (const char* required : kMachine) {
    if (values.has(required)) continue;
    problems.push_back({path + ":1", required,
                        std::string("expected the key \"") + required +
                            "\" beside the other figures of an array, found none. Add it."});
  }
  const auto* scratchpad = values.get<Limit>("scratchpad");
  if (scratchpad != nullptr && (scratchpad->is_share || scratchpad->value > 1e12)) {
    problems.push_back({values.values.at("scratchpad").where, "scratchpad",
                        "expected a size like \"512 KiB\", found " +
                            std::string(scratchpad->is_share ? "a share" : "more than 1 TB") + ". Give its bytes."});
  }
}

kernels::npu::Card machine_of(const CheckedValues& values, const TargetCard& card) {
  const auto count = [&](const char* key, std::size_t fallback) {
    const auto* value = values.get<std::int64_t>(key);
    return value != nullptr ? static_cast<std::size_t>(*value) : fallback;
  };
  kernels::npu::Card machine;
  machine.name = card.name;
  machine.array_rows = count("array_rows", 0);
  machine.array_columns = count("array_columns", 0);
  machine.scratchpad_bytes = static_cast<std::size_t>(values.get<Limit>("scratchpad")->value);
  machine.clock_mhz = *values.get<double>("clock_mhz");
  machine.bandwidth_mb_s = card.bandwidth_gb_s * 1e3;
  machine.dma_start_cycles = count("dma_start_cycles", 0);
  machine.mac_cycles = count("mac_cycles", 1);
  machine.mac_start_cycles = count("mac_start_cycles", 0);
  machine.requantize_per_cycle = count("requantize_per_cycle", 1);
  return machine;
}

std::string joined(std::span<const std::string_view> words) {
  std::string text;
  for (std::string_view word : words) text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

void check_card(const YamlNode& root, const std::string& path, CheckedValues& into) {
  if (root.kind != YamlNode::Kind::map) {
    into.problems.push_back({path + ":1", "", "expected a map with name and kind, found " + describe(root)});
    return;
  }
  std::vector<std::string_view> known;
  for (const KeyRow& row : kRows) known.push_back(row.path);
  for (const auto& [key, node] : root.entries) {
    const KeyRow* found = nullptr;
    for (const KeyRow& row : kRows) {
      if (row.path == key.text) found = &row;
    }
    if (found == nullptr) {
      into.problems.push_back({key.where, key.text,
                               "expected one of " + joined(known) + "; found the unknown key \"" + key.text + "\"" +
                                   did_you_mean(key.text, known)});
    } else if (into.has(key.text)) {
      into.problems.push_back(
          {key.where, key.text, "expected each key once, found \"" + key.text + "\" again. Remove one."});
    } else if (auto value = check_value(node, *found, {node.where, key.text}, into)) {
      into.values[key.text] = {std::move(*value), node.where, key.text};
    }
  }
  for (const char* required : {"name", "kind"}) {
    if (root.find(required) == nullptr) {
      into.problems.push_back(
          {path + ":1", required, std::string("expected the key \"") + required + "\", found none. Add it."});
    }
  }
}

}  // namespace

Result<TargetCard> load_target(const std::string& path, TargetUse use) {
  CTK_TRY(const std::string text, read_text(path));
  CTK_TRY(const YamlNode root, parse_yaml(text, path));
  CheckedValues values;
  check_card(root, path, values);
  std::vector<Problem> problems = values.problems;
  check_machine(values, path, problems);
  if (use == TargetUse::partition) {
    check_accelerator(values, path, problems);
  } else if (use == TargetUse::estimate) {
    check_figures(values, path, problems);
  } else {
    problems.insert(problems.end(), values.unavailable.begin(), values.unavailable.end());
  }
  if (!problems.empty()) {
    std::string lines;
    for (const Problem& problem : problems) lines += (lines.empty() ? "" : "\n") + to_string(problem);
    return config_error(std::move(lines));
  }
  TargetCard card;
  card.name = *values.get<std::string>("name");
  card.kind = *values.get<std::string>("kind");
  if (const auto* threads = values.get<std::int64_t>("threads")) card.threads = static_cast<int>(*threads);
  if (const auto* schemes = values.get<std::vector<std::string>>("schemes")) {
    for (const std::string& scheme : *schemes) card.schemes.push_back(*parse_scheme(scheme));
  }
  const auto number = [&](const char* key, double& into) {
    if (const auto* value = values.get<double>(key)) into = *value;
  };
  const auto time = [&](const char* key, double& into) {
    if (const auto* value = values.get<Limit>(key)) into = value->value;
  };
  number("peak_gops", card.peak_gops);
  number("bandwidth_gb_s", card.bandwidth_gb_s);
  number("transfer_gb_s", card.transfer_gb_s);
  time("launch", card.launch_us);
  time("transfer_start", card.transfer_start_us);
  time("transfer_flush", card.transfer_flush_us);
  if (const auto* shared = values.get<bool>("shared_memory")) card.has_shared_memory = *shared;
  if (const auto* ops = values.get<std::vector<std::string>>("ops")) card.ops = *ops;
  if (values.has("array_rows")) card.machine = machine_of(values, card);
  return card;
}

}  // namespace ctk::pipeline
