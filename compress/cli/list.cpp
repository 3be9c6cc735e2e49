// compress list: what there is to choose from, read from the tables the program itself uses.
#include <functional>
#include <nlohmann/json.hpp>

#include "compress/cli/cli.h"
#include "compress/config_schema.h"
#include "compress/names.h"
#include "graph/graph.h"
#include "graph/passes/passes.h"
#include "kernels/npu/compile.h"
#include "kernels/select.h"

namespace ctk::cli {
namespace {

using pipeline::NameKind;

struct Row {
  std::string name, what, needs;
};

std::vector<Row> named(NameKind kind) {
  std::vector<Row> rows;
  for (const pipeline::NameRow& row : pipeline::names(kind)) {
    rows.push_back({std::string(row.name), std::string(row.what), std::string(row.needs)});
  }
  return rows;
}

std::vector<Row> ops() {
  return {
#define CTK_OP(name) {#name, "", ""},
#include "graph/ops.def"
#undef CTK_OP
  };
}

std::vector<Row> passes() {
  std::vector<Row> rows;
  for (const graph::Pass& pass : graph::passes()) rows.push_back({std::string(pass.name), std::string(pass.what), ""});
  return rows;
}

std::vector<Row> kernel_rows() {
  std::vector<Row> rows;
  for (const kernels::KernelInfo& info : kernels::all_kernels()) {
    rows.push_back({info.name, info.kind, host_supports(info.isa) ? "" : std::string(name_of(info.isa))});
  }
  for (const kernels::KernelInfo& info : kernels::foreign_kernels()) {
    rows.push_back({info.name, info.kind, std::string(name_of(info.isa)) + ", another family of processors"});
  }
  for (const kernels::npu::Row& row : kernels::npu::rows())
    rows.push_back({row.name, std::string(row.kind), "a device card of an npu (--target)"});
  return rows;
}

// The keys of a pipeline file.
std::vector<Row> keys() {
  std::vector<Row> rows;
  for (const pipeline::KeyRow& row : pipeline::key_rows()) {
    std::string what(pipeline::title_of(row.kind));
    if (row.fallback == "!") {
      what += ", required";
    } else if (!row.fallback.empty()) {
      what += ", default " + std::string(row.fallback);
    }
    if (!row.what.empty()) what += ": " + std::string(row.what);
    rows.push_back({std::string(row.path), what, std::string(row.needs)});
  }
  return rows;
}

struct Kind {
  const char* name;
  std::function<std::vector<Row>()> rows;
};
const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"stages", [] { return named(NameKind::stage); }},
      {"schemes", [] { return named(NameKind::scheme); }},
      {"observers", [] { return named(NameKind::observer); }},
      {"quantizers", [] { return named(NameKind::quantizer); }},
      {"sensitivity", [] { return named(NameKind::sensitivity_metric); }},
      {"solvers", [] { return named(NameKind::solver); }},
      {"formats", [] { return named(NameKind::format); }},
      {"metrics", [] { return named(NameKind::metric); }},
      {"kernels", kernel_rows},
      {"ops", ops},
      {"passes", passes},
      {"keys", keys},
  };
  return all;
}

Status show(const Session& session, const std::string& wanted) {
  for (const Kind& kind : kinds()) {
    if (kind.name != wanted) continue;
    const std::vector<Row> rows = kind.rows();
    if (session.is_json) {
      nlohmann::ordered_json list = nlohmann::ordered_json::array();
      for (const Row& row : rows) {
        list.push_back(
            {{"name", row.name}, {"what", row.what}, {"available", row.needs.empty()}, {"needs", row.needs}});
      }
      print(nlohmann::ordered_json{{wanted, list}}.dump(2) + "\n");
      return {};
    }
    std::size_t width = 0;
    for (const Row& row : rows) width = std::max(width, row.name.size());
    for (const Row& row : rows) {
      std::string line = row.name + std::string(width + 2 - row.name.size(), ' ') + row.what;
      if (!row.needs.empty()) line += (row.what.empty() ? "(needs " : " (needs ") + row.needs + ")";
      while (line.ends_with(' ')) line.pop_back();
      print(line + "\n");
    }
    return {};
  }
  return internal_error("list: no table \"" + wanted + "\"");
}

}  // namespace

void add_list(CLI::App& app, Session& session) {
  CLI::App* verb = app.add_subcommand("list", "List what there is to choose from");
  const auto wanted = std::make_shared<std::string>();
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) names.push_back(kind.name);
  verb->add_option("what", *wanted, "What to list")->required()->check(CLI::IsMember(names));
  add_json(*verb, session);
  verb->callback([&session, wanted] { session.action = [&session, wanted] { return show(session, *wanted); }; });
}

}  // namespace ctk::cli
