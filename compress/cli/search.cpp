// compress search: another budget for a run whose layers are scored, without scoring again.
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

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
                       {"price", budget.price},
                       {"objective", budget.is_objective}});
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
    if (budget.is_objective) {
      text += ", as small as the loss allows";
    } else if (std::isfinite(budget.limit)) {
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

ordered_json as_json(const exporter::BudgetFigures& figures) {
  const auto value = [](const exporter::Figure& figure) { return figure ? ordered_json(*figure) : ordered_json(); };
  return {{"size", value(figures.size)},
          {"latency", value(figures.latency)},
          {"peak_memory", value(figures.peak_memory)},
          {"bits", value(figures.bits)},
          {"latency_decode", value(figures.latency_decode)},
          {"latency_prefill", value(figures.latency_prefill)}};
}

ordered_json as_json(const pipeline::ResolvedFront& result) {
  ordered_json points = ordered_json::array();
  for (const pipeline::FrontAnswer& point : result.points) {
    points.push_back({{"loss", point.row.loss},
                      {"cost", as_json(point.row.cost)},
                      {"price", as_json(point.row.price)},
                      {"chosen", point.row.is_chosen},
                      {"assignment", point.schemes}});
  }
  return {{"over", result.over}, {"front", points}, {"warnings", result.warnings}};
}

std::string padded(const std::string& text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

std::string as_text(const pipeline::ResolvedFront& result) {
  const auto cell = [](const exporter::Figure& figure, const char* unit, double scale = 1) {
    if (!figure) return padded("-", 12);
    return padded(*unit == 0 ? number(scale * *figure) : search::format_amount(*figure, unit), 12);
  };
  std::string text;
  for (const char* title : {"size", "latency", "peak memory", "bits", "loss (nats)", "a kB saves", "a ms saves"})
    text += padded(title, 12);
  text += "\n";
  for (const pipeline::FrontAnswer& point : result.points) {
    const exporter::BudgetFigures &cost = point.row.cost, &price = point.row.price;
    text += cell(cost.size, "B") + cell(cost.latency, "us") + cell(cost.peak_memory, "B") + cell(cost.bits, "") +
            padded(number(point.row.loss), 12) + cell(price.size, "", 1000) + cell(price.latency, "", 1000) +
            (point.row.is_chosen ? "  taken by the run" : "") + "\n";
  }
  for (const std::string& warning : result.warnings) text += "warning  " + warning + "\n";
  return text;
}

Status front(const Session& session, const pipeline::FrontRequest& request) {
  CTK_TRY(const pipeline::ResolvedFront result, pipeline::resolve_front(request));
  print(session.is_json ? as_json(result).dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n"
                        : as_text(result));
  return {};
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
  const auto request = std::make_shared<pipeline::FrontRequest>();
  const auto points = std::make_shared<std::optional<std::size_t>>();
  pipeline::ResolveRequest& of = request->of;
  verb->add_option("--from", of.run, "The output folder of a run with a stage \"search\"")->required();
  verb->add_option("--budget", of.budgets,
                   "size=60 kB, latency=0.2 ms, peak_memory=1 MB, bits=4.5, or shares like size=20 %");
  verb->add_option("--minimize", of.minimize, "size, latency, peak_memory or bits, within --budget loss=0.02 (nats)");
  verb->add_option("--solver", of.solver, "As stages.search.solver")->capture_default_str();
  CLI::Option* assignment =
      verb->add_option("--assignment", of.assignment, "Price this file of schemes instead of solving");
  verb->add_flag("--allow-other-machine", of.allow_other_machine, "Times of another processor will do");
  CLI::Option* pareto =
      verb->add_option("--pareto", *points, "The whole front instead: so many answers (along each of two budgets)")
          ->check(CLI::Range(2, 1000))
          ->excludes(assignment);
  verb->add_option("--over", request->over, "Budgets of the front, one or two (default: size, and latency if timed)")
      ->needs(pareto);
  add_json(*verb, session);
  verb->callback([&session, request, points] {
    session.action = [&session, request, points]() -> Status {
      if (!*points) return search(session, request->of);
      request->points = **points;
      return front(session, *request);
    };
  });
}

}  // namespace ctk::cli
