// The search's table as files that people edit and share (compress/resolve.h says which), written and read.
#pragma once

#include <nlohmann/json.hpp>

#include "compress/search_plan.h"

namespace ctk::pipeline::search_table {

struct SavedSearch {
  Table table;
  Limits limit, extra;  // of the run; what its built answer was found to miss
  Limits baseline;      // of the float model: what shares are shares of
  std::string cpu;      // on which times were taken; empty: there are none
};

// {"costs": ..., "times": ...}; losses are in scores.json.
nlohmann::json to_json(const SavedSearch& saved);
// Writes search/costs.json, search/assignment.json and, if there are times, search/times.json. Errors: input.
Status write_search_files(const nlohmann::json& files, const nlohmann::json& schemes, const std::string& folder);
// Reads them with scores.json. Choices without a score are left out; a group without any stays float.
// Errors: input (names the file, the layer and what was expected).
Result<SavedSearch> read_search_files(const std::string& folder, std::vector<std::string>& warnings);

// {"layer": "w8a8_c"} -> the choice of every group; layers that are absent stay float. Errors: input (names the file
// and the layer: unknown, with a scheme it has no score for, or unlike the layers it goes with).
Result<std::vector<std::size_t>> read_assignment(const std::string& path, Table& table);

}  // namespace ctk::pipeline::search_table
