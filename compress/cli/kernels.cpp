// compress kernels: which row of each kernel kind this machine takes, and why not the others.
#include <map>
#include <nlohmann/json.hpp>

#include "compress/cli/cli.h"
#include "core/cpu_isa.h"
#include "kernels/gemm_w8a8/gemm_w8a8.h"
#include "kernels/npu/compile.h"
#include "kernels/select.h"
#include "kernels/winograd_w8a8/winograd_w8a8.h"

namespace ctk::cli {
namespace {

struct Line {
  kernels::KernelInfo info;
  bool is_chosen = false;
  std::string why;
  std::string isa = std::string(name_of(info.isa));  // as told
};

// Winograd has no choice of its own: it comes with a row of gemm_w8a8, for the convolutions that fit it.
void add_winograd(std::vector<Line>& list) {
  std::vector<Line> lines;
  for (const kernels::GemmIntRow& row : kernels::gemm_w8a8_rows()) {
    if (row.winograd == nullptr) continue;
    Line line{{"winograd_w8a8", row.isa, row.winograd->name}, false, {}};
    for (const Line& product : list) {
      if (product.info.name == row.name) line.is_chosen = product.is_chosen;
    }
    line.why = line.is_chosen ? std::string("for 3x3 convolutions of stride 1, beside ") + row.name
                              : std::string("comes with ") + row.name + ", which was not taken";
    lines.push_back(std::move(line));
  }
  list.insert(list.end(), lines.begin(), lines.end());
}

// Tables stand in order of preference, so the last row that may run is the one that is taken.
Result<std::vector<Line>> lines() {
  CTK_TRY(const std::vector<Isa> allowed, allowed_isas());
  const auto is_allowed = [&allowed](Isa isa) {
    for (const Isa one : allowed) {
      if (one == isa) return true;
    }
    return false;
  };
  std::vector<Line> list;
  std::map<std::string, std::size_t> chosen;
  for (const kernels::KernelInfo& info : kernels::all_kernels()) {
    if (is_allowed(info.isa)) chosen[info.kind] = list.size();
    list.push_back({info, false, {}});
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    Line& line = list[i];
    const auto taken = chosen.find(line.info.kind);
    line.is_chosen = taken != chosen.end() && taken->second == i;
    if (line.is_chosen) {
      line.why = "the last row this machine may run";
    } else if (!host_supports(line.info.isa)) {
      line.why = "this processor has no " + std::string(name_of(line.info.isa));
    } else if (!is_allowed(line.info.isa)) {
      line.why = "CTK_ISA forces another";
    } else {
      line.why = "a later row is faster here";
    }
  }
  add_winograd(list);
  for (const kernels::KernelInfo& info : kernels::foreign_kernels()) {
    list.push_back({info, false, "for another family of processors: " + std::string(name_of(info.isa))});
  }
  for (const kernels::npu::Row& row : kernels::npu::rows()) {
    list.push_back({{std::string(row.kind), Isa::scalar, row.name},
                    false,
                    "for an NPU that a device card describes: compress bench MODEL --target CARD",
                    "npu_sim"});
  }
  return list;
}

Status show(const Session& session, bool with_why) {
  CTK_TRY(const std::vector<Line> list, lines());
  if (session.is_json) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const Line& line : list) {
      rows.push_back({{"kind", line.info.kind},
                      {"isa", line.isa},
                      {"name", line.info.name},
                      {"chosen", line.is_chosen},
                      {"why", line.why}});
    }
    print(nlohmann::ordered_json{{"cpu", cpu_model()}, {"kernels", rows}}.dump(2) + "\n");
    return {};
  }
  print(cpu_model() + "\n");
  for (const Line& line : list) {
    if (!with_why && !line.is_chosen) continue;
    std::string text = (line.is_chosen ? "* " : "  ") + line.info.kind;
    text.resize(std::max<std::size_t>(text.size() + 1, 20), ' ');
    text += line.info.name;
    if (with_why) {
      text.resize(std::max<std::size_t>(text.size() + 1, 60), ' ');
      text += line.why;
    }
    print(text + "\n");
  }
  return {};
}

}  // namespace

void add_kernels(CLI::App& app, Session& session) {
  CLI::App* verb = app.add_subcommand("kernels", "Show which kernels this machine runs");
  const auto with_why = std::make_shared<bool>(false);
  verb->add_flag("--why", *with_why, "Also show the rows that were not taken, and why");
  add_json(*verb, session);
  verb->callback([&session, with_why] { session.action = [&session, with_why] { return show(session, *with_why); }; });
}

}  // namespace ctk::cli
