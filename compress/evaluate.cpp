#include "compress/evaluate.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>

#include "compress/interrupt.h"
#include "compress/model.h"
#include "compress/quantize/stream.h"
#include "graph/shapes.h"

namespace ctk::pipeline {
namespace {

constexpr std::size_t kMostResident = std::size_t{1} << 30;  // of float weights, packed
constexpr std::size_t kBatchesAtOnce = 16;

// Samples [first, last) of `split` in as few batches as their shapes allow: one, or one each.
Result<std::vector<data::Batch>> read_batches(const graph::Graph& graph, const data::Split& split, std::size_t first,
                                              std::size_t last) {
  std::vector<data::Batch> batches;
  auto whole = split.read(first, last);
  if (whole || !has_free_sizes(graph)) {
    if (!whole) return std::move(whole).error();
    batches.push_back(std::move(*whole));
    return batches;
  }
  for (std::size_t i = first; i < last; ++i) {
    CTK_TRY(data::Batch one, split.read(i, i + 1));
    batches.push_back(std::move(one));
  }
  return batches;
}

}  // namespace

std::size_t fixed_batch(const graph::Graph& graph, std::size_t fallback) {
  for (graph::ValueId id : graph.inputs()) {
    const auto& shape = graph.value(id).shape;
    if (shape && !shape->empty() && (*shape)[0].size > 0) return static_cast<std::size_t>((*shape)[0].size);
  }
  return fallback;
}

std::size_t batch_size(const graph::Graph& graph, const data::Split& split) {
  if (const std::size_t fixed = fixed_batch(graph, 0); fixed != 0) return fixed;
  std::vector<Shape> shapes = graph::default_input_shapes(graph, 1);
  if (has_free_sizes(graph) && split.count() > 0) {
    const auto sample = split.read(0, 1);
    for (std::size_t i = 0; sample && i < sample->inputs.size(); ++i) shapes[i] = sample->inputs[i].shape();
  }
  const auto infos = graph::infer_shapes(graph, shapes, true);
  std::size_t largest = 1;
  for (std::size_t i = 0; infos && i < infos->size(); ++i) {
    const bool is_constant = graph.value(graph::ValueId{static_cast<std::uint32_t>(i)}).is_constant();
    if ((*infos)[i].known && !is_constant) largest = std::max(largest, 4 * elements((*infos)[i].info.shape));
  }
  const std::size_t fitting = std::max<std::size_t>(1, kBatchBytes / (3 * largest));
  return std::clamp<std::size_t>(split.count(), 1, std::min(kMostBatch, fitting));
}

namespace {

// A network whose float weights would take more than kMostResident is run part by part, some batches at a time.
Status for_each_batch_in_parts(std::size_t step, const graph::Graph& graph, const data::Split& split,
                               const BatchVisitor& each) {
  for (std::size_t from = 0; from < split.count(); from += step * kBatchesAtOnce) {
    quantization::Stream stream(graph);
    std::vector<std::pair<data::Batch, std::size_t>> batches;  // with the first sample of each
    for (std::size_t first = from; first < std::min(split.count(), from + step * kBatchesAtOnce); first += step) {
      CTK_TRY(std::vector<data::Batch> read, read_batches(graph, split, first, std::min(split.count(), first + step)));
      for (std::size_t b = 0; b < read.size(); ++b) {
        CTK_CHECK(stream.begin(read[b].inputs));
        batches.emplace_back(std::move(read[b]), first + b);
      }
    }
    CTK_CHECK(stream.finish([&](std::size_t sample, std::vector<Tensor> outputs) {
      return each(outputs, batches[sample].first, batches[sample].second);
    }));
  }
  return {};
}

Status for_each_batch_of(std::size_t step, const graph::Graph& graph, const data::Split& split,
                         const graph::ValueObserver& observer, const std::vector<graph::ValueId>& keep,
                         const BatchVisitor& each) {
  if (!observer && quantization::float_weight_bytes(graph) > kMostResident)
    return for_each_batch_in_parts(step, graph, split, each);
  std::unique_ptr<runtime::CpuExecutor> executor;
  for (std::size_t first = 0; first < split.count(); first += step) {
    CTK_CHECK(check_interrupt());
    const std::size_t last = std::min(split.count(), first + step);
    CTK_TRY(const std::vector<data::Batch> batches, read_batches(graph, split, first, last));
    for (std::size_t b = 0; b < batches.size(); ++b) {
      const data::Batch& batch = batches[b];
      if (executor == nullptr) {
        std::vector<Shape> shapes;
        for (const Tensor& input : batch.inputs) shapes.push_back(input.shape());
        CTK_TRY(executor, runtime::CpuExecutor::create(graph, std::move(shapes), {keep, true}));
      }
      auto outputs = executor->run_observed(batch.inputs, observer);
      if (!outputs) return std::move(outputs).error().with_context(split.source->where(split.indices[first + b]));
      CTK_CHECK(each(*outputs, batch, first + b));
    }
  }
  return {};
}

// A network of other widths may take other batches: what it is compared with says how many samples went together.
std::size_t batch_beside(const OutputCache* reference, const graph::Graph& graph, const data::Split& split) {
  if (reference != nullptr && reference->count() > 0 && !reference->batch(0).shape().empty()) {
    const auto step = static_cast<std::size_t>(reference->batch(0).shape()[0]);
    if (step > 0 && (split.count() + step - 1) / step == reference->count()) return step;
  }
  return batch_size(graph, split);
}

}  // namespace

Status for_each_batch(const graph::Graph& graph, const data::Split& split, const graph::ValueObserver& observer,
                      const std::vector<graph::ValueId>& keep, const BatchVisitor& each, std::size_t step) {
  return for_each_batch_of(step > 0 ? step : batch_size(graph, split), graph, split, observer, keep, each);
}

Status OutputCache::add(const Tensor& output) {
  if (folder_.empty() || in_memory_ + output.bytes() <= kMostInMemory) {
    in_memory_ += output.bytes();
    batches_.push_back(output);
    return {};
  }
  const auto failed = [&] {
    return input_error(folder_ + ": expected room for the float network's outputs (" +
                       std::to_string(file_end_ + output.bytes()) + " bytes so far), found " + std::strerror(errno) +
                       ". Free some, or evaluate fewer samples");
  };
  if (file_ == nullptr) {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    const int made = ::open(folder_.c_str(), O_TMPFILE | O_RDWR, 0600);
    if (made < 0) return failed();
    file_ = std::shared_ptr<const int>(new int(made), [](const int* descriptor) {
      ::close(*descriptor);
      delete descriptor;
    });
  }
  const auto* bytes = static_cast<const char*>(output.data());
  for (std::size_t done = 0; done < output.bytes();) {
    const ::ssize_t wrote =
        ::pwrite(*file_, bytes + done, output.bytes() - done, static_cast<::off_t>(file_end_ + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return failed();
    done += static_cast<std::size_t>(wrote);
  }
  const std::size_t length = output.bytes();
  void* mapped = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, *file_, static_cast<::off_t>(file_end_));
  if (mapped == MAP_FAILED) return failed();
  const std::shared_ptr<const void> owner(mapped, [length](const void* p) { ::munmap(const_cast<void*>(p), length); });
  batches_.push_back(Tensor::borrowed(output.dtype(), output.shape(), mapped, owner));
  constexpr std::size_t kPage = 4096;
  file_end_ += (length + kPage - 1) / kPage * kPage;
  return {};
}

Result<OutputCache> collect_outputs(const graph::Graph& graph, const data::Split& split, const std::string& folder) {
  OutputCache cache(folder);
  CTK_CHECK(for_each_batch(
      graph, split, {}, {},
      [&](const std::vector<Tensor>& outputs, const data::Batch&, std::size_t) { return cache.add(outputs[0]); }));
  return cache;
}

Result<Evaluation> evaluate(const graph::Graph& graph, const data::Split& split, const std::string& metric,
                            const OutputCache* reference, OutputCache* kept) {
  const data::MetricInfo* info = nullptr;
  if (!metric.empty()) {
    CTK_TRY(info, data::find_metric(metric));
    if (info->needs_labels && !split.source->has_labels()) {
      return input_error(split.path() + ": metric \"" + metric +
                         "\" needs labels, and this source has none. Give `labels:`");
    }
  }
  CTK_TRY(const data::MetricInfo* agreement_info, data::find_metric("agreement"));
  CTK_TRY(const data::MetricInfo* kl_info, data::find_metric("kl"));
  CTK_TRY(const data::MetricInfo* sqnr_info, data::find_metric("sqnr_db"));
  std::optional<data::MetricSum> own;
  if (info != nullptr) own.emplace(*info);
  data::MetricSum agreement(*agreement_info), kl(*kl_info), sqnr(*sqnr_info);
  std::size_t number = 0;
  const BatchVisitor measure = [&](const std::vector<Tensor>& outputs, const data::Batch& batch,
                                   std::size_t) -> Status {
    const TensorView expected = reference != nullptr ? reference->batch(number).view() : TensorView{};
    std::vector<std::int64_t> next;
    if (info != nullptr && info->needs_tokens) {
      CTK_TRY(next, data::next_tokens(batch.inputs[0]));
    }
    if (own) CTK_CHECK(own->add(outputs[0].view(), next.empty() ? batch.labels : next, expected));
    if (reference != nullptr) {
      CTK_CHECK(agreement.add(outputs[0].view(), {}, expected));
      CTK_CHECK(kl.add(outputs[0].view(), {}, expected));
      CTK_CHECK(sqnr.add(outputs[0].view(), {}, expected));
    }
    if (kept != nullptr) CTK_CHECK(kept->add(outputs[0]));
    ++number;
    return {};
  };
  CTK_CHECK(for_each_batch_of(batch_beside(reference, graph, split), graph, split, {}, {}, measure));
  Evaluation result;
  if (own) {
    CTK_TRY(result.metric, own->value());
  }
  if (reference != nullptr) {
    CTK_TRY(result.agreement, agreement.value());
    CTK_TRY(result.kl, kl.value());
    // Has no value where the float network's outputs are all 0; only the metric asked for must have one.
    const auto ratio = sqnr.value();
    result.sqnr_db = ratio ? *ratio : data::MetricValue{std::numeric_limits<double>::quiet_NaN(), 0, 0};
  }
  return result;
}

}  // namespace ctk::pipeline
