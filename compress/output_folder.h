// The output folder: may a run write there, and does it leave every input alone. Asked before any work.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compress/config.h"
#include "export/formats.h"

namespace ctk::pipeline {

// A folder that is absent, empty or made by an earlier run; with `force` also one that holds other things. Looks only.
// Errors: config (the root folder, a file on the way, no right to write, things that no run of ours made).
Status check_output_folder(const std::string& output, bool force);

struct InputFile {
  std::string what, path;  // what: "the model"
};
// None of the files to write is one that is read, seen through links and hard links. Errors: config (names both).
Status keep_inputs(const std::string& output, std::span<const std::string> names, std::span<const InputFile> inputs);
// Adds all files that a format may write.
void add_names(const exporter::Format& format, std::vector<std::string>& names);

// No file that a run of `config` writes into `output` may be one it reads: `model_files`, the pipeline file, sources of
// data, a device card. Errors: as keep_inputs().
Status check_output_files(const PipelineConfig& config, const std::string& output,
                          const std::vector<std::string>& model_files);

// Makes the folder, marks it as ours, and removes unfinished files that killed runs left under names of ours.
// Errors: config (the folder cannot be made), input (the disk is full or fails).
Status claim_output(const std::string& output);

}  // namespace ctk::pipeline
