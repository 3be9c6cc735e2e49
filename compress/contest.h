// Whole networks held against each other on the select split: the finalists of a search, and methods that find codes.
#pragma once

#include <vector>

#include "compress/loss_correction.h"
#include "compress/quantize/from_inputs.h"
#include "compress/session.h"

namespace ctk::pipeline {

struct CodedNetwork {
  graph::Graph graph;
  quantization::ApplyOutcome outcome;
  std::vector<exporter::TransformRow> corrections{};  // of low_rank
};

struct Contest {
  CodedNetwork taken;
  quantization::GivenCodes given;           // its codes found beforehand
  std::size_t finalist = 0;                 // of session.finalists, behind them of `further`
  std::vector<exporter::FinalistRow> rows;  // empty: there was one network only
  std::vector<Finalist> further;            // found with losses put right
  std::vector<exporter::LossRoundRow> rounds;
  std::optional<search_table::Correction> correction;
};

// Some stage must be chosen on the select split: several finalists, or a method with inputs and a split to judge it by.
bool needs_contest(const Session& session);

// The part of the select split that is compared. Errors: input (those of running).
Result<data::Split> compared_part(const Session& session);

// Codes every finalist by `method` and takes the one with the least KL to the float network, or the best metric where
// samples have labels (KL decides ties); then rounds the same schemes to nearest, which wins if it is better.
// A method that looks at inputs walks the network once: finalists share the codes of layers they agree on, and the
// other layers of the second and later ones are fitted to inputs behind the first one's codes. What is measured is what
// goes on. With stages.search.corrections, the first finalist's figures put the losses right and further networks join
// (loss_correction.h). Reference outputs stay below kReferenceBytes: of a language model, fewer windows are compared
// than the split has. Errors: those of coding and running.
inline constexpr std::size_t kReferenceBytes = std::size_t{1800} << 20;
Result<Contest> hold_contest(const Session& session);

// A weight that few bits harm most: it is coded by name only.
bool is_embedding_too(const graph::Graph& graph, const graph::Layer& layer);

// Where a method that looks at inputs keeps its codes layer by layer until the stage is done.
std::string codes_folder(const Session& session);

// One network: `schemes` by the pipeline's method with codes found beforehand, or rounded where there are none.
Result<CodedNetwork> code_network(const Session& session, const quantization::SchemeMap& schemes,
                                  const quantization::GivenCodes& given);

}  // namespace ctk::pipeline
