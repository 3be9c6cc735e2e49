// compress search: another budget for a run whose layers are scored, without scoring again.
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "compress/cli/cli.h"
#include "compress/resolve.h"
#include "core/printable.h"
#include "search/problem.h"

namespace ctk::cli {
namespace {

using nlohmann::ordered_json;

ordered_json as_json(const pipeline::Resolved& result) {
  ordered_json schemes = ordered_json::object(), reasons = schemes, budgets = ordered_json::array();
  for (const pipeline::ResolvedLayer& layer : result.layers) {
    schemes[layer.layer] = layer.scheme;
    reasons[layer.layer] = layer.reason;
  }
  for (const pipeline::ResolvedBudget& budget : result.budgets) {
    budgets.push_back({{"name", budget.name},
                       {"unit", budget.unit},
                       {"limit", std::isfinite(budget.limit) ? ordered_json(budget.limit) : ordered_json()},
                       {"predicted", budget.predicted},
                       {"price", budget.price}});
  }
  return {{"assignment", schemes},
          {"loss", result.loss},
          {"budget", budgets},
          {"certificate", {{"bound", result.bound}, {"gap", result.gap}, {"proved_optimal", result.is_proved}}},
          {"reasons", reasons},
          {"warnings", result.warnings}};
}

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string as_text(const pipeline::Resolved& result) {
  std::string text;
  for (const pipeline::ResolvedLayer& layer : result.layers)
    text += "layer    " + printable(layer.layer) + ": " + layer.scheme + " (" + layer.reason + ")\n";
  for (const pipeline::ResolvedBudget& budget : result.budgets) {
    text += "budget   " + budget.name + " predicted " + search::format_amount(budget.predicted, budget.unit);
    if (std::isfinite(budget.limit)) {
      text += ", at most " + search::format_amount(budget.limit, budget.unit) + "; 1 " + budget.unit + " more buys " +
              number(budget.price) + " nats";
    }
    text += "\n";
  }
  text += "loss     " + number(result.loss) + " nats as a sum over layers";
  if (result.is_proved || result.gap > 0) {
    text += "; no answer has less than " + number(result.bound) + " (gap " + number(result.gap) +
            (result.is_proved ? ", proved)" : ")");
  }
  text += "\n";
  for (const std::string& warning : result.warnings) text += "warning  " + warning + "\n";
  return text;
}

Status search(const Session& session, const pipeline::ResolveRequest& request) {
  CTK_TRY(const pipeline::Resolved result, pipeline::resolve(request));
  print(session.is_json ? as_json(result).dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n"
                        : as_text(result));
  return {};
}

}  // namespace

void add_search(CLI::App& app, Session& session) {
  CLI::App* verb = app.add_subcommand("search", "Another budget for a run that has its scores, in a moment");
  const auto request = std::make_shared<pipeline::ResolveRequest>();
  verb->add_option("--from", request->run, "The output folder of a run with a stage \"search\"")->required();
  verb->add_option("--budget", request->budgets,
                   "size=60 kB, latency=0.2 ms, peak_memory=1 MB, or shares like size=20 %");
  verb->add_option("--solver", request->solver, "As stages.search.solver")->capture_default_str();
  verb->add_option("--assignment", request->assignment, "Price this file of schemes instead of solving");
  verb->add_flag("--allow-other-machine", request->allow_other_machine, "Times of another processor will do");
  add_json(*verb, session);
  verb->callback([&session, request] { session.action = [&session, request] { return search(session, *request); }; });
}

}  // namespace ctk::cli
