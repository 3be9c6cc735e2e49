#include "compress/quantize/outcome_facts.h"

#include <nlohmann/json.hpp>

namespace ctk::quantization {

using nlohmann::json;

json facts_of(const WeightOutcome& outcome) {
  json facts{{"squared_error", outcome.squared_error},
             {"squared_error_rtn", outcome.squared_error_rtn},
             {"raised_scales", outcome.raised_scales}};
  if (const auto& receipt = outcome.receipt) {
    facts["receipt"] = {{"rows", receipt->rows},
                        {"held_out_rows", receipt->held_out_rows},
                        {"damping", receipt->damping},
                        {"damping_raises", receipt->damping_raises},
                        {"error_rounding", receipt->error_rounding},
                        {"error", receipt->error},
                        {"fell_back", receipt->fell_back}};
  }
  return facts;
}

void take_facts(const json& facts, WeightOutcome& outcome) {
  outcome.squared_error = facts.value("squared_error", 0.0);
  outcome.squared_error_rtn = facts.value("squared_error_rtn", 0.0);
  outcome.raised_scales = facts.value("raised_scales", 0);
  if (!facts.contains("receipt")) return;
  const json& row = facts["receipt"];
  InputReceipt receipt;
  receipt.rows = row.value("rows", std::int64_t{0});
  receipt.held_out_rows = row.value("held_out_rows", std::int64_t{0});
  receipt.damping = row.value("damping", 0.0);
  receipt.damping_raises = row.value("damping_raises", 0);
  receipt.error_rounding = row.value("error_rounding", 0.0);
  receipt.error = row.value("error", 0.0);
  receipt.fell_back = row.value("fell_back", false);
  outcome.receipt = receipt;
}

}  // namespace ctk::quantization
