// The names a pipeline file may use for stages, methods, metrics, formats and the like: one table a kind.
//
// A row with `needs` is a name we know but this build cannot serve yet: it parses, and is refused before any work with
// the words "<name> needs <needs>, which this version does not have yet".
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/quant_scheme.h"

namespace ctk::pipeline {

enum class NameKind {
  stage,
  scheme,
  observer,
  sensitivity_metric,
  solver,
  quantizer,
  format,
  metric,
  oracle,
  prune_method,
  transform,
  target,
};

struct NameRow {
  std::string_view name;
  std::string_view needs;  // empty: available
  std::string_view what;   // one line for `compress list`
};

// In the order `compress list` prints; for stages that is also the order they must have in a pipeline.
std::span<const NameRow> names(NameKind kind);
const NameRow* find_name(NameKind kind, std::string_view name);
std::vector<std::string_view> list_names(NameKind kind);
// Whether a stage puts another float network in the model's place.
bool changes_network(std::string_view stage);
// What a well-formed scheme needs that this build lacks; empty when it can be used. Covers schemes without a row too.
std::string_view scheme_needs(const QuantScheme& scheme);
std::string_view title_of(NameKind kind);  // "stage", "solver": for messages

// What "1.0 pt" of this metric means in its own unit: 0.01 for shares (top1, top5, agreement), else 1.
double point_of_metric(std::string_view name);

// Files an oracle of validate.against reads; empty when it needs none.
std::span<const std::string_view> formats_for_oracle(std::string_view oracle);

}  // namespace ctk::pipeline
