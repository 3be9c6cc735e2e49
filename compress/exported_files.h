// Writing what a format makes of a graph into a folder, each file whole or not at all.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"
#include "export/formats.h"
#include "export/report.h"

namespace ctk::pipeline {

// Files of an earlier export that go with the format's own are removed first; the format's own file comes last, so that
// it never stands without its companions. Errors: input (the disk).
Result<std::vector<exporter::FileRow>> write_exported(const std::string& folder, const exporter::Format& format,
                                                      const exporter::Written& written);

struct Exported {
  std::vector<exporter::FileRow> files;
  std::vector<std::string> notes;  // of reading and of writing
};

// `model` (any kind that is read) as a file of another format in `folder`; rounds nothing.
// Errors: input (the model; a form that the format cannot hold), config (unknown format; a folder that holds other
// things, without `force`; a file that the model is read from).
Result<Exported> export_model(const std::string& model, const std::string& format, const std::string& folder,
                              bool force);

}  // namespace ctk::pipeline
