#include "compress/onnxruntime_check.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "compress/language_check.h"
#include "compress/python_peer.h"
#include "core/cpu_isa.h"
#include "core/file.h"
#include "core/parallel.h"

namespace ctk::pipeline {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Reads the job from argv[1]; raw arrays beside it. Batches of 16 keep its memory flat; a fixed leading dimension is
// respected. Timing runs one sample at a time after a warm-up.
constexpr const char* kScript = R"py(
import json, sys, time
import numpy as np
import onnxruntime as ort
job = json.load(open(sys.argv[1]))
options = ort.SessionOptions()
options.intra_op_num_threads = job["threads"]
options.inter_op_num_threads = 1
options.log_severity_level = 4
if job["mode"] == "as_written":
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
if job["mode"] == "reordered":
    options.add_session_config_entry("session.disable_quant_qdq", "1")
session = ort.InferenceSession(job["model"], options, providers=["CPUExecutionProvider"])
feeds = {i["name"]: np.fromfile(i["file"], dtype=i["dtype"]).reshape(i["shape"]) for i in job["inputs"]}
count = next(iter(feeds.values())).shape[0]
fixed = session.get_inputs()[0].shape[0]
step = fixed if isinstance(fixed, int) and fixed > 0 else 16
parts = [session.run(None, {k: v[a:a + step] for k, v in feeds.items()}) for a in range(0, count, step)]
answer = {"outputs": []}
for o in range(len(parts[0])):
    whole = np.concatenate([p[o] for p in parts]).astype(np.float32)
    whole.tofile(job["out"] + str(o))
    answer["outputs"].append(list(whole.shape))
if job["seconds"] > 0:
    one = {k: v[:step if fixed == step else 1] for k, v in feeds.items()}
    for _ in range(10):
        session.run(None, one)
    times = []
    end = time.perf_counter() + job["seconds"]
    while time.perf_counter() < end or len(times) < 20:
        start = time.perf_counter()
        session.run(None, one)
        times.append((time.perf_counter() - start) * 1e6)
    answer["times"] = [float(np.median(times)), float(np.percentile(times, 95)), float(np.min(times))]
json.dump(answer, open(job["out"] + "json", "w"))
)py";

const char* mode_name(PeerMode mode) {
  switch (mode) {
    case PeerMode::as_written:
      return "as_written";
    case PeerMode::reordered:
      return "reordered";
    default:
      return "fused";
  }
}

const char* numpy_name(DType dtype) {
  switch (dtype) {
    case DType::i64:
      return "int64";
    case DType::i32:
      return "int32";
    default:
      return "float32";
  }
}

constexpr const char* kNbitsFormat = "onnx_nbits";  // has inputs of its own: compress/language_check
constexpr double kLeastAgreement = 0.98;            // roundings at ties may differ; more than this is another network

// First outputs of the first `count` samples, one tensor.
Result<Tensor> collect_rows(const graph::Graph& graph, const data::Split& split, std::size_t count,
                            const std::string& folder) {
  data::Split part = split;
  part.indices.resize(count);
  CTK_TRY(const OutputCache cache, collect_outputs(graph, part, folder));
  Shape shape = cache.batch(0).shape();
  shape[0] = static_cast<std::int64_t>(count);
  CTK_TRY(Tensor rows, Tensor::zeros(DType::f32, shape));
  auto* to = static_cast<std::byte*>(rows.mutable_data());
  for (std::size_t b = 0; b < cache.count(); ++b) {
    const Tensor& batch = cache.batch(b);
    std::memcpy(to, batch.data(), batch.bytes());
    to += batch.bytes();
  }
  return rows;
}

Result<exporter::CheckRow> compare_rows(const Tensor& mine, const Tensor& theirs, const std::string& against,
                                        const std::string& file) {
  if (mine.shape() != theirs.shape()) {
    return input_error(file + ": expected outputs of shape " + ctk::to_string(mine.shape()) + ", found " +
                       ctk::to_string(theirs.shape()) + " from " + against);
  }
  CTK_TRY(const data::MetricInfo* info, data::find_metric("agreement"));
  data::MetricSum agreement(*info);
  CTK_CHECK(agreement.add(mine.view(), {}, theirs.view()));
  CTK_TRY(const data::MetricValue agreed, agreement.value());
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const double a = mine.values<float>()[i], b = theirs.values<float>()[i];
    largest = std::max(largest, std::abs(b));
    difference = std::max(difference, std::abs(a - b));
  }
  exporter::CheckRow row;
  row.against = against;
  row.file = file;
  row.agreement = agreed.value;
  row.max_error = largest > 0 ? difference / largest : 0;
  row.result = agreed.value >= kLeastAgreement ? "agrees" : "differs";
  return row;
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

struct FileCheck {
  Session& session;
  const std::string& python;
  const std::string& file;  // in the output folder
  const std::vector<std::string>& names;
  const std::vector<Tensor>& inputs;
  const Tensor& mine;

  Result<Tensor> run(PeerMode mode) const {
    CTK_TRY(const PeerRun peer, run_in_onnxruntime(python, session.output + "/" + file, names, inputs,
                                                   session.output + "/.cache", {threads(), 0, mode}));
    return peer.outputs[0];
  }
};

// Why the file as written differs from our run of it: the network itself, or (what must not be) an error.
Status explain_difference(const FileCheck& check, const Tensor& as_written, double agreement) {
  CTK_TRY(const Tensor reordered, check.run(PeerMode::reordered));
  CTK_TRY(exporter::CheckRow self,
          compare_rows(reordered, as_written, "onnxruntime against itself, sums in another order", check.file));
  // Both figures are shares of the same samples; twice the peer's own share of changes is chance, more is not.
  const bool network = 1 - agreement <= 2 * (1 - *self.agreement);
  const std::string found = check.file + ": ONNX Runtime, running the file as it is written, picks the same class on " +
                            percent(agreement) + " of the samples";
  if (network) {
    check.session.warn("rounding_sensitive", found + "; it agrees with itself on " + percent(*self.agreement) +
                                                 " when only the order of its float sums changes, so this network "
                                                 "turns single roundings into other classes");
  } else {
    check.session.warn("differs_from_onnxruntime", found);
  }
  check.session.report.checks.push_back(std::move(self));
  return {};
}

Status check_file(const FileCheck& check) {
  CTK_TRY(const Tensor as_written, check.run(PeerMode::as_written));
  CTK_TRY(exporter::CheckRow row, compare_rows(check.mine, as_written, "onnxruntime", check.file));
  const double agreement = *row.agreement;
  check.session.report.checks.push_back(std::move(row));
  if (agreement < kLeastAgreement) CTK_CHECK(explain_difference(check, as_written, agreement));
  CTK_TRY(const Tensor fused, check.run(PeerMode::fused));
  CTK_TRY(exporter::CheckRow fast, compare_rows(check.mine, fused, "onnxruntime, its own int8 kernels", check.file));
  if (*fast.agreement < kLeastAgreement) {
    const bool has_vnni = host_supports(Isa::x86_avx512vnni) || host_supports(Isa::x86_avxvnni);
    check.session.warn(
        "onnxruntime_int8_differs",
        check.file + ": with its own int8 kernels ONNX Runtime picks the same class on " + percent(*fast.agreement) +
            " of the samples" +
            (has_vnni ? ". See the report's checks; the bundle runs as measured"
                      : "; on processors without VNNI those kernels saturate sums of two products at 16 bits. Set "
                        "reduce_range: true in stages.quantize, or the session option "
                        "session.x64quantprecision to 1 there, or deploy the bundle"));
  }
  check.session.report.checks.push_back(std::move(fast));
  return {};
}

}  // namespace

std::string find_onnxruntime_python(std::string* reason) {
  return find_python("onnxruntime, numpy", "onnxruntime", reason);
}

Result<PeerRun> run_in_onnxruntime(const std::string& python, const std::string& model,
                                   const std::vector<std::string>& names, const std::vector<Tensor>& inputs,
                                   const std::string& scratch, const PeerOptions& options) {
  const ScratchFolder folder(scratch + "/onnxruntime." + std::to_string(::getpid()));
  json job{{"model", fs::absolute(model).string()}, {"threads", options.threads},   {"seconds", options.timing_seconds},
           {"mode", mode_name(options.mode)},       {"out", folder.path + "/out."}, {"inputs", json::array()}};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string file = folder.path + "/in." + std::to_string(i);
    CTK_CHECK(write_file(file, inputs[i].raw()));
    job["inputs"].push_back(
        {{"name", names[i]}, {"file", file}, {"dtype", numpy_name(inputs[i].dtype())}, {"shape", inputs[i].shape()}});
  }
  CTK_CHECK(write_file(folder.path + "/job.json", job.dump()));
  CTK_CHECK(write_file(folder.path + "/run.py", std::string_view(kScript)));
  if (run_program({python, folder.path + "/run.py", folder.path + "/job.json"}, folder.path + "/log") != 0) {
    return input_error(model + ": ONNX Runtime could not run it: " + last_line(folder.path + "/log"));
  }
  CTK_TRY(const std::string answer_text, read_text(folder.path + "/out.json"));
  const json answer = json::parse(answer_text, nullptr, false);
  if (answer.is_discarded()) return internal_error("ONNX Runtime's answer is not JSON");
  PeerRun run;
  for (std::size_t o = 0; o < answer["outputs"].size(); ++o) {
    const Shape shape = answer["outputs"][o].get<Shape>();
    CTK_TRY(const MappedFile file, MappedFile::open(folder.path + "/out." + std::to_string(o)));
    CTK_TRY(Tensor output, Tensor::zeros(DType::f32, shape));
    if (file.bytes().size() != output.bytes())
      return internal_error("ONNX Runtime's answer has another size than its shape");
    if (output.bytes() != 0) std::memcpy(output.mutable_data(), file.bytes().data(), output.bytes());
    run.outputs.push_back(std::move(output));
  }
  if (answer.contains("times")) {
    run.median_us = answer["times"][0];
    run.p95_us = answer["times"][1];
    run.least_us = answer["times"][2];
  }
  return run;
}

Status check_against_onnxruntime(Session& session) {
  std::vector<exporter::FileRow> files;
  for (const exporter::FileRow& file : session.report.files) {
    if (file.format.rfind("onnx", 0) == 0 && file.format != kNbitsFormat) files.push_back(file);
  }
  const auto not_run = [&](const std::string& file, const std::string& why) {
    session.report.checks.push_back({"onnxruntime", file, {}, {}, {}, "not run: " + why});
    session.warn("check_not_run", "validate against onnxruntime: " + why);
  };
  const bool has_nbits = std::ranges::any_of(session.report.files,
                                             [](const exporter::FileRow& file) { return file.format == kNbitsFormat; });
  if (has_nbits) CTK_CHECK(check_language_model(session, "onnxruntime"));
  if (files.empty() && has_nbits) return {};
  if (files.empty()) {
    not_run("", "the export stage wrote no ONNX file; add onnx_qdq, onnx or onnx_nbits to its formats");
    return {};
  }
  std::string reason;
  const std::string python = find_onnxruntime_python(&reason);
  if (python.empty()) {
    not_run(files[0].path, reason);
    return {};
  }
  const data::Split& split = *session.splits.test;
  std::size_t count = std::min<std::size_t>(split.count(), 512);
  auto samples = split.read(0, count);
  while (!samples && count > 1 && has_free_sizes(session.final_graph())) {  // a batch has one shape
    count /= 2;
    samples = split.read(0, count);
  }
  CTK_TRY(const data::Batch batch, std::move(samples));
  std::vector<std::string> names;
  for (graph::ValueId id : session.final_graph().inputs()) names.push_back(session.final_graph().value(id).name);
  CTK_TRY(const Tensor mine, collect_rows(session.final_graph(), split, count, session.output + "/.cache"));
  for (const exporter::FileRow& file : files)
    CTK_CHECK(check_file({session, python, file.path, names, batch.inputs, mine}));
  return {};
}

}  // namespace ctk::pipeline
