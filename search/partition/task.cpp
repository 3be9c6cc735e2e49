#include "search/partition/task.h"

#include <algorithm>
#include <cmath>
#include <queue>

#include "search/problem.h"

namespace ctk::search::partition {
namespace {

// What is wrong with an amount that must be finite and >= 0 ("" if nothing).
std::string fault(double amount) {
  if (std::isnan(amount)) return "found nan";
  if (amount < 0 || std::isinf(amount)) return "found " + format_amount(amount, "");
  return "";
}

Error wrong(const std::string& where, const std::string& expected, const std::string& found,
            const std::string& remedy) {
  return input_error("partition: " + where + ": expected " + expected + ", " + found + ". " + remedy);
}

Status check_units(const Task& task) {
  if (task.units.empty()) return wrong("units", "at least one", "found none", "Name a unit");
  for (const Unit& unit : task.units) {
    if (auto found = fault(unit.launch_us); !found.empty())
      return wrong("unit \"" + unit.name + "\"", "a launch time >= 0 us", found, "Correct its card");
  }
  bool has_links = task.links.size() == task.units.size();
  for (const auto& row : task.links) has_links = has_links && row.size() == task.units.size();
  if (!has_links) {
    return wrong("links",
                 "one from every unit to every other (" + std::to_string(task.units.size()) + " x " +
                     std::to_string(task.units.size()) + ")",
                 "found another number", "Describe every pair");
  }
  for (std::size_t a = 0; a < task.units.size(); ++a) {
    for (std::size_t b = 0; b < task.units.size(); ++b) {
      if (a == b) continue;
      const Link& link = task.links[a][b];
      const std::string where = "link from \"" + task.units[a].name + "\" to \"" + task.units[b].name + "\"";
      for (double amount : {link.start_us, link.flush_us}) {
        if (auto found = fault(amount); !found.empty()) return wrong(where, "times >= 0 us", found, "Correct its card");
      }
      if (!link.is_shared_memory && !(link.bytes_per_us > 0)) {
        return wrong(where, "a bandwidth above 0", "found " + format_amount(link.bytes_per_us, "B/us"),
                     "Correct its card");
      }
    }
  }
  if (auto found = fault(task.convert_start_us); !found.empty() || !(task.convert_bytes_per_us > 0))
    return wrong("conversion", "a time >= 0 us and a rate above 0", found.empty() ? "found no rate" : found,
                 "Correct the card");
  return {};
}

Status check_nodes(const Task& task) {
  for (const Node& node : task.nodes) {
    const std::string where = "node \"" + node.name + "\" (" + node.op + ")";
    if (node.on.size() != task.units.size()) {
      return wrong(where, std::to_string(task.units.size()) + " times, one a unit",
                   "found " + std::to_string(node.on.size()), "Give each unit a time or a reason");
    }
    std::string reasons;
    bool is_runnable = false;
    for (std::size_t u = 0; u < node.on.size(); ++u) {
      const double us = node.on[u].us;
      if (std::isnan(us) || us < 0)
        return wrong(where, "a time >= 0 us on \"" + task.units[u].name + "\"", "found " + format_amount(us, ""),
                     "Measure it again");
      is_runnable = is_runnable || std::isfinite(us);
      reasons += (reasons.empty() ? "" : "; ") + task.units[u].name + ": " +
                 (node.on[u].reason.empty() ? "cannot run it" : node.on[u].reason);
    }
    if (!is_runnable)
      return wrong(where, "a unit that can run it", "found none (" + reasons + ")",
                   "Add a unit or replace the operator");
  }
  return {};
}

Status check_values(const Task& task, bool in_order) {
  for (const Value& value : task.values) {
    const std::string where = "value \"" + value.name + "\"";
    if (auto found = fault(value.bytes); !found.empty()) return wrong(where, "bytes >= 0", found, "Give its size");
    if (!(value.transfer_scale > 0) || std::isinf(value.transfer_scale))
      return wrong(where, "a scale above 0", "found " + format_amount(value.transfer_scale, ""), "Profile again");
    if (value.producer != kOutside && value.producer >= task.nodes.size())
      return wrong(where, "a producer below " + std::to_string(task.nodes.size()),
                   "found " + std::to_string(value.producer), "Name a node of the network");
    for (std::size_t consumer : value.consumers) {
      if (std::count(value.consumers.begin(), value.consumers.end(), consumer) > 1)
        return wrong(where, "each reader once", "found " + std::to_string(consumer) + " twice", "Drop one");
      if (consumer >= task.nodes.size())
        return wrong(where, "readers below " + std::to_string(task.nodes.size()), "found " + std::to_string(consumer),
                     "Name nodes of the network");
      if (in_order && value.producer != kOutside && consumer <= value.producer)
        return wrong(where,
                     "its producer \"" + task.nodes[value.producer].name + "\" before its reader \"" +
                         task.nodes[consumer].name + "\"",
                     "found it after", "Sort the nodes");
    }
  }
  return {};
}

}  // namespace

Status check_task(const Task& task) {
  CTK_CHECK(check_units(task));
  CTK_CHECK(check_nodes(task));
  return check_values(task, true);
}

Status sort_nodes(Task& task) {
  CTK_CHECK(check_values(task, false));
  const std::size_t n = task.nodes.size();
  std::vector<std::vector<std::size_t>> readers(n);
  std::vector<std::size_t> waits(n, 0);
  for (const Value& value : task.values) {
    if (value.producer == kOutside) continue;
    for (std::size_t consumer : value.consumers) {
      readers[value.producer].push_back(consumer);
      ++waits[consumer];
    }
  }
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t i = 0; i < n; ++i) {
    if (waits[i] == 0) ready.push(i);
  }
  std::vector<std::size_t> place(n, n);
  std::vector<Node> sorted;
  while (!ready.empty()) {
    const std::size_t i = ready.top();
    ready.pop();
    place[i] = sorted.size();
    sorted.push_back(task.nodes[i]);
    for (std::size_t reader : readers[i]) {
      if (--waits[reader] == 0) ready.push(reader);
    }
  }
  if (sorted.size() < n) {
    std::string names;
    for (std::size_t i = 0, shown = 0; i < n && shown < 5; ++i) {
      if (place[i] < n) continue;
      names += (shown++ == 0 ? "\"" : ", \"") + task.nodes[i].name + "\"";
    }
    return wrong("nodes", "an order in which producers come first", "found a cycle through or before " + names,
                 "Remove the loop");
  }
  task.nodes = std::move(sorted);
  for (Value& value : task.values) {
    if (value.producer != kOutside) value.producer = place[value.producer];
    for (std::size_t& consumer : value.consumers) consumer = place[consumer];
  }
  return {};
}

double transfer_us(const Task& task, const Value& value, std::size_t from, std::size_t to) {
  if (from == to) return 0;
  const Link& link = task.links[from][to];
  const double moved = link.is_shared_memory ? 0 : value.bytes / link.bytes_per_us;
  return value.transfer_scale * (link.start_us + moved + link.flush_us);
}

double convert_us(const Task& task, const Value& value, std::size_t unit, std::size_t consumer, std::size_t its_unit) {
  const bool is_outside = value.producer == kOutside;
  const std::string& written = is_outside ? task.outside_form : task.nodes[value.producer].on[unit].form;
  const std::string& read = task.nodes[consumer].on[its_unit].form;
  if (written == read || (is_outside && written.empty())) return 0;
  return task.convert_start_us + value.bytes / task.convert_bytes_per_us;
}

double return_convert_us(const Task& task, const Value& value, std::size_t unit) {
  if (value.producer == kOutside || task.outside_form.empty()) return 0;
  if (task.nodes[value.producer].on[unit].form == task.outside_form) return 0;
  return task.convert_start_us + value.bytes / task.convert_bytes_per_us;
}

Cost cost_of(const Task& task, const std::vector<std::size_t>& unit_of) {
  Cost cost;
  const std::size_t n = task.nodes.size();
  std::vector<double> arrives(n, 0);  // when the last input of a node is there, side by side
  std::vector<std::vector<std::size_t>> written(n);
  std::vector<double> waited(n, 0);  // transfers and conversions that a node pays for
  const auto deliver = [&](const Value& value, std::size_t from, double ready_us) {
    std::vector<double> there(task.units.size(), -1);
    there[from] = ready_us;
    const auto bring = [&](std::size_t to) {
      if (there[to] >= 0) return 0.0;
      const double us = transfer_us(task, value, from, to);
      cost.transfer_us += us;
      there[to] = ready_us + us;
      return us;
    };
    for (std::size_t consumer : value.consumers) {
      const std::size_t to = unit_of[consumer];
      bring(to);
      const double us = convert_us(task, value, from, consumer, to);
      cost.convert_us += us;
      arrives[consumer] = std::max(arrives[consumer], there[to]);
      waited[consumer] += us;
    }
    if (value.is_output) {
      bring(0);
      const double us = return_convert_us(task, value, from);
      cost.convert_us += us;
      there[0] += us;
    }
    return *std::max_element(there.begin(), there.end());
  };
  for (const Value& value : task.values) {
    if (value.producer == kOutside) deliver(value, 0, 0);
  }
  for (std::size_t v = 0; v < task.values.size(); ++v) {
    if (task.values[v].producer != kOutside) written[task.values[v].producer].push_back(v);
  }
  std::vector<double> free_at(task.units.size(), 0);
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t unit = unit_of[i];
    const double us = task.nodes[i].on[unit].us;
    const bool is_start = i == 0 || unit_of[i - 1] != unit;
    const double launch = is_start ? task.units[unit].launch_us : 0;
    cost.compute_us += us;
    cost.launch_us += launch;
    const double done = std::max(free_at[unit], arrives[i]) + launch + waited[i] + us;
    free_at[unit] = done;
    cost.makespan_us = std::max(cost.makespan_us, done);
    for (std::size_t v : written[i]) {
      const double last = deliver(task.values[v], unit, done);
      if (task.values[v].is_output) cost.makespan_us = std::max(cost.makespan_us, last);
    }
  }
  cost.total_us = cost.compute_us + cost.transfer_us + cost.convert_us + cost.launch_us;
  return cost;
}

}  // namespace ctk::search::partition
