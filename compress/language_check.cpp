#include "compress/language_check.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "compress/evaluate.h"
#include "compress/python_peer.h"
#include "core/file.h"
#include "core/parallel.h"

namespace ctk::pipeline {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kWindows = 4;

// Each script defines run(ids) -> logits [positions, vocabulary]; job: model, threads, longest window.
constexpr const char* kOpening = R"py(
import json, os, sys
import numpy as np
job = json.load(open(sys.argv[1]))
)py";
constexpr const char* kClosing = R"py(
for i, ids in enumerate(job["windows"]):
    np.ascontiguousarray(run(ids), dtype=np.float32).tofile(job["out"] + str(i))
)py";
constexpr const char* kTransformers = R"py(
os.environ["HF_HUB_OFFLINE"] = "1"
import torch, transformers
torch.set_num_threads(job["threads"])
model = transformers.AutoModelForCausalLM.from_pretrained(job["model"], dtype=torch.float32, local_files_only=True)
model.eval()
def run(ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].float().numpy()
)py";
constexpr const char* kLlama = R"py(
import llama_cpp
model = llama_cpp.Llama(job["model"], n_ctx=job["longest"], n_batch=job["longest"], logits_all=True,
                        n_threads=job["threads"], n_threads_batch=job["threads"], verbose=False)
def run(ids):
    model.reset()
    model.eval(ids)
    return np.array(model.scores[:len(ids)])
)py";
constexpr const char* kOnnxRuntime = R"py(
import onnxruntime as ort
options = ort.SessionOptions()
options.intra_op_num_threads = job["threads"]
options.inter_op_num_threads = 1
options.log_severity_level = 4
session = ort.InferenceSession(job["model"], options, providers=["CPUExecutionProvider"])
def run(ids):
    feeds = {"input_ids": np.array([ids], np.int64), "attention_mask": np.ones((1, len(ids)), np.int64)}
    for cache in session.get_inputs()[2:]:
        feeds[cache.name] = np.zeros((1, cache.shape[1], 0, cache.shape[3]), np.float32)
    return session.run(["logits"], feeds)[0][0]
)py";

struct Peer {
  const char* name;
  const char* format;  // whose file it reads
  bool reads_folder;   // the folder that file lies in
  const char* modules;
  const char* package;
  const char* script;
  double least_agreement;
};
// llama.cpp rounds activations to 8 bits, and its cache is fp16: near ties turn over more often.
constexpr std::array kPeers{
    Peer{"llama.cpp", "gguf", false, "llama_cpp, numpy", "llama-cpp-python", kLlama, 0.9},
    Peer{"transformers", "safetensors", true, "torch, transformers, compressed_tensors, numpy",
         "torch transformers compressed-tensors", kTransformers, 0.98},
    Peer{"onnxruntime", "onnx_nbits", false, "onnxruntime, numpy", "onnxruntime", kOnnxRuntime, 0.98},
};

struct Windows {
  std::vector<std::vector<std::int64_t>> ids;
  std::vector<Tensor> logits;  // ours, [positions, vocabulary]
};

Result<Windows> run_ours(Session& session) {
  data::Split part = *session.splits.test;
  part.indices.resize(std::min(part.indices.size(), kWindows));
  Windows windows;
  CTK_CHECK(for_each_batch(session.final_graph(), part, {}, {},
                           [&](const std::vector<Tensor>& outputs, const data::Batch& batch, std::size_t) -> Status {
                             const auto ids = batch.inputs[0].values<std::int64_t>();
                             windows.ids.emplace_back(ids.begin(), ids.end());
                             windows.logits.push_back(outputs[0].clone());
                             return {};
                           }));
  return windows;
}

struct Comparison {
  double largest = 0, difference = 0;
  std::size_t agreed = 0, positions = 0;

  void add(std::span<const float> mine, std::span<const float> theirs, std::size_t rows) {
    const std::size_t width = mine.size() / rows;
    for (std::size_t r = 0; r < rows; ++r) {
      const auto a = mine.subspan(r * width, width), b = theirs.subspan(r * width, width);
      agreed += std::ranges::max_element(a) - a.begin() == std::ranges::max_element(b) - b.begin();
      for (std::size_t i = 0; i < width; ++i) {
        largest = std::max(largest, std::abs(double{b[i]}));
        difference = std::max(difference, std::abs(double{a[i]} - b[i]));
      }
    }
    positions += rows;
  }
};

Result<Comparison> run_theirs(const Peer& peer, const std::string& python, const std::string& model,
                              const Windows& windows, const std::string& scratch) {
  const ScratchFolder folder(scratch + "/peer." + std::to_string(::getpid()));
  std::size_t longest = 1;
  for (const auto& ids : windows.ids) longest = std::max(longest, ids.size());
  const json job{{"model", fs::absolute(model).string()},
                 {"threads", threads()},
                 {"longest", longest},
                 {"windows", windows.ids},
                 {"out", folder.path + "/out."}};
  CTK_CHECK(write_file(folder.path + "/job.json", job.dump()));
  CTK_CHECK(write_file(folder.path + "/run.py", std::string(kOpening) + peer.script + kClosing));
  if (run_program({python, folder.path + "/run.py", folder.path + "/job.json"}, folder.path + "/log") != 0)
    return input_error(model + ": " + peer.name + " could not run it: " + last_line(folder.path + "/log"));
  Comparison comparison;
  for (std::size_t i = 0; i < windows.ids.size(); ++i) {
    CTK_TRY(const MappedFile file, MappedFile::open(folder.path + "/out." + std::to_string(i)));
    const Tensor& mine = windows.logits[i];
    if (file.bytes().size() != mine.bytes()) {
      return input_error(model + ": expected " + std::to_string(mine.size()) + " logits from " + peer.name +
                         ", found " + std::to_string(file.bytes().size() / sizeof(float)) +
                         ". Is its vocabulary the model's?");
    }
    const auto* theirs = reinterpret_cast<const float*>(file.bytes().data());
    comparison.add(mine.values<float>(), std::span(theirs, mine.size()), windows.ids[i].size());
  }
  return comparison;
}

bool is_language_model(const graph::Graph& graph) {
  return graph.inputs().size() == 1 && graph.value(graph.inputs()[0]).dtype == DType::i64 &&
         graph.outputs().size() == 1;
}

}  // namespace

Status check_language_model(Session& session, const std::string& against) {
  const auto peer = std::ranges::find_if(kPeers, [&](const Peer& row) { return row.name == against; });
  if (peer == kPeers.end())
    return config_error("stages.validate.against: expected a program we compare with, found \"" + against +
                        "\". Use llama.cpp, transformers, onnxruntime or float");
  const auto file =
      std::ranges::find_if(session.report.files, [&](const auto& row) { return row.format == peer->format; });
  const auto not_run = [&](const std::string& path, const std::string& why) -> Status {
    session.report.checks.push_back({against, path, {}, {}, {}, "not run: " + why});
    session.warn("check_not_run", "validate against " + against + ": " + why);
    return {};
  };
  if (file == session.report.files.end())
    return not_run("", "the export stage wrote no " + std::string(peer->format) + "; add it to its formats");
  const std::string path = file->path;
  if (!is_language_model(session.final_graph())) return not_run(path, "the model does not read tokens alone");
  std::string reason;
  const std::string python = find_python(peer->modules, peer->package, &reason);
  if (python.empty()) return not_run(path, reason);
  CTK_TRY(const Windows windows, run_ours(session));
  const fs::path written = fs::path(session.output) / path;
  CTK_TRY(const Comparison found,
          run_theirs(*peer, python, (peer->reads_folder ? written.parent_path() : written).string(), windows,
                     session.output + "/.cache"));
  exporter::CheckRow row;
  row.against = against;
  row.file = path;
  row.agreement = static_cast<double>(found.agreed) / static_cast<double>(found.positions);
  row.max_error = found.largest > 0 ? found.difference / found.largest : 0;
  const bool agrees = *row.agreement >= peer->least_agreement;
  row.result = std::string(agrees ? "agrees" : "differs") + ", " + std::to_string(found.positions) + " positions";
  session.report.checks.push_back(row);
  if (!agrees)
    session.warn("differs_from_" + against, path + ": " + against + " finds another token most likely at " +
                                                std::to_string(found.positions - found.agreed) + " of " +
                                                std::to_string(found.positions) + " positions");
  return {};
}

}  // namespace ctk::pipeline
