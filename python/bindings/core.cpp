// Python's view of the toolkit: graphs on numpy arrays, pipelines, reports. Exceptions live only here.
#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdio>
#include <cstring>

#include "compress/cli/command_line.h"
#include "compress/interrupt.h"
#include "compress/model.h"
#include "compress/pipeline.h"
#include "core/parallel.h"
#include "data/chat/chat_template.h"
#include "data/text/tokenizer.h"
#include "graph/layer.h"
#include "graph/text.h"
#include "runtime/cpu_executor.h"
#include "train/trainer_loader.h"

namespace py = pybind11;

namespace {

using ctk::DType;
using ctk::Tensor;

struct PythonError : std::runtime_error {
  PythonError(const std::string& text, int exit) : std::runtime_error(text), code(exit) {}
  int code;
};

[[noreturn]] void raise(const ctk::Error& error) {
  throw PythonError(error.message, ctk::exit_code(error.code));
}

template <class T>
T unwrap(ctk::Result<T> result) {
  if (!result) raise(result.error());
  return std::move(*result);
}

struct NumpyType {
  DType dtype;
  char kind;
  py::ssize_t size;  // bytes of an element
  const char* name;
};
constexpr NumpyType kNumpyTypes[] = {
    {DType::f32, 'f', 4, "float32"}, {DType::f64, 'f', 8, "float64"}, {DType::f16, 'f', 2, "float16"},
    {DType::i8, 'i', 1, "int8"},     {DType::i16, 'i', 2, "int16"},   {DType::i32, 'i', 4, "int32"},
    {DType::i64, 'i', 8, "int64"},   {DType::u8, 'u', 1, "uint8"},    {DType::u16, 'u', 2, "uint16"},
    {DType::u32, 'u', 4, "uint32"},  {DType::u64, 'u', 8, "uint64"},  {DType::boolean, 'b', 1, "bool"}};

// dtype of a numpy array, or nothing when we have no such type.
std::optional<DType> dtype_of(const py::array& array) {
  for (const NumpyType& type : kNumpyTypes) {
    if (array.dtype().kind() == type.kind && array.itemsize() == type.size) return type.dtype;
  }
  return std::nullopt;
}

py::dtype numpy_dtype(DType dtype) {
  for (const NumpyType& type : kNumpyTypes) {
    if (type.dtype == dtype) return py::dtype(type.name);
  }
  raise(ctk::input_error("an output of dtype " + std::string(name_of(dtype)) + " has no numpy form"));
}

Tensor to_tensor(const std::string& name, const py::array& given) {
  py::array array = py::array::ensure(given, py::array::c_style);
  const auto dtype = dtype_of(array);
  if (!dtype)
    raise(ctk::input_error("input \"" + name + "\": numpy dtype " + py::str(array.dtype()).cast<std::string>() +
                           " is not supported"));
  // An array of the other byte order has the same kind and size: numpy turns it round.
  if (array.dtype().byteorder() == '>') array = array.attr("astype")(numpy_dtype(*dtype)).cast<py::array>();
  ctk::Shape shape(array.shape(), array.shape() + array.ndim());
  Tensor tensor = unwrap(Tensor::zeros(*dtype, shape));
  if (tensor.bytes() != 0) std::memcpy(tensor.mutable_data(), array.data(), tensor.bytes());
  return tensor;
}

class PyGraph {
 public:
  explicit PyGraph(ctk::pipeline::LoadedModel model) : model_(std::move(model)) {}

  std::vector<std::tuple<std::string, std::string, ctk::Shape>> inputs() const {
    std::vector<std::tuple<std::string, std::string, ctk::Shape>> rows;
    for (ctk::graph::ValueId id : graph().inputs()) {
      const auto& value = graph().value(id);
      ctk::Shape shape;
      for (const auto& dim : value.shape.value_or(ctk::graph::DeclaredShape{})) shape.push_back(dim.size);
      rows.emplace_back(value.name, std::string(name_of(value.dtype)), shape);
    }
    return rows;
  }

  std::vector<std::string> outputs() const {
    std::vector<std::string> names;
    for (ctk::graph::ValueId id : graph().outputs()) names.push_back(graph().value(id).name);
    return names;
  }

  py::list layers() const {
    py::list rows;
    for (const ctk::graph::Layer& layer : ctk::graph::layers_of(graph())) {
      const auto& weight = graph().value(layer.weight);
      const auto& node = graph().node(layer.node);
      py::dict row;
      row["name"] = graph().address(layer.node);
      row["op"] = node.op_type;
      row["scheme"] = to_string(node.scheme);
      row["shape"] = weight.quantized ? weight.quantized->codes.shape() : weight.constant->shape();
      row["bits"] = weight.quantized ? ctk::bits_of(weight.quantized->codes.dtype()) : 32;
      rows.append(row);
    }
    return rows;
  }

  py::dict run(const py::dict& given, int threads) {
    ctk::set_threads(threads);
    std::vector<Tensor> tensors;
    std::vector<ctk::Shape> shapes;
    for (ctk::graph::ValueId id : graph().inputs()) {
      const std::string& name = graph().value(id).name;
      if (!given.contains(name.c_str()))
        raise(ctk::input_error("input \"" + name + "\" is missing; expected inputs: " + known_inputs()));
      tensors.push_back(to_tensor(name, given[name.c_str()].cast<py::array>()));
      shapes.push_back(tensors.back().shape());
    }
    if (given.size() != tensors.size())
      raise(ctk::input_error("an input was given that the model does not have; expected inputs: " + known_inputs()));
    if (executor_ == nullptr) executor_ = unwrap(ctk::runtime::CpuExecutor::create(graph(), shapes));
    const std::vector<Tensor> results = [&] {
      py::gil_scoped_release release;
      return unwrap(executor_->run(tensors));
    }();
    py::dict answer;
    for (std::size_t i = 0; i < results.size(); ++i) {
      py::array array(numpy_dtype(results[i].dtype()),
                      std::vector<py::ssize_t>(results[i].shape().begin(), results[i].shape().end()));
      if (results[i].bytes() != 0) std::memcpy(array.mutable_data(), results[i].data(), results[i].bytes());
      answer[graph().value(graph().outputs()[i]).name.c_str()] = array;
    }
    return answer;
  }

  std::string text() const { return ctk::graph::print_graph(graph()); }

 private:
  const ctk::graph::Graph& graph() const { return model_.graph; }
  std::string known_inputs() const {
    std::string names;
    for (const auto& [name, dtype, shape] : inputs()) names += (names.empty() ? "" : ", ") + name;
    return names;
  }

  ctk::pipeline::LoadedModel model_;
  std::unique_ptr<ctk::runtime::CpuExecutor> executor_;
};

class PyTokenizer {
 public:
  explicit PyTokenizer(std::shared_ptr<const ctk::data::Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}

  py::array encode(const py::bytes& text, bool add_special_tokens) const {
    const auto view = static_cast<std::string_view>(text);
    const std::vector<std::int64_t> ids = [&] {
      py::gil_scoped_release release;
      return unwrap(tokenizer_->encode(view, {.add_special_tokens = add_special_tokens}));
    }();
    return py::array_t<std::int64_t>(static_cast<py::ssize_t>(ids.size()), ids.data());
  }

  py::bytes decode(const std::vector<std::int64_t>& ids, bool skip_special_tokens) const {
    return unwrap(tokenizer_->decode(ids, skip_special_tokens));
  }

  const ctk::data::Tokenizer& get() const { return *tokenizer_; }

 private:
  std::shared_ptr<const ctk::data::Tokenizer> tokenizer_;
};

// Hands stage progress to a Python callable; its exceptions stop the run at the next point that asks.
class PyProgress final : public ctk::pipeline::ProgressSink {
 public:
  explicit PyProgress(py::object callable) : callable_(std::move(callable)) {}

  void stage_begin(const std::string& name, std::int64_t total) override {
    name_ = name;
    total_ = total;
    call(0.0);
  }
  void advance(std::int64_t done) override {
    if (total_ > 0)
      call(std::min(1.0, static_cast<double>(done) / static_cast<double>(total_)));
    else
      poll();
  }
  void stage_end(const std::string&, double, bool) override { call(1.0); }
  void stage_stopped(const std::string&, double, const std::string&) override {}
  void note(const std::string&) override {}

  std::exception_ptr failure;

 private:
  void poll() {
    py::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) stop(std::make_exception_ptr(py::error_already_set()));
  }
  void call(double share) {
    py::gil_scoped_acquire gil;
    if (failure) return;
    try {
      if (!callable_.is_none()) callable_(name_, share);
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    } catch (py::error_already_set&) {
      stop(std::current_exception());
    }
  }
  void stop(std::exception_ptr error) {
    failure = std::move(error);
    ctk::set_interrupted(true);
  }

  py::object callable_;
  std::string name_;
  std::int64_t total_ = 0;
};

std::string run_config(const ctk::pipeline::PipelineConfig& config, const std::string& path, const std::string& output,
                       const std::vector<std::string>& overrides, int threads, bool force, bool resume,
                       py::object progress) {
  ctk::set_interrupted(false);
  PyProgress sink(std::move(progress));
  ctk::pipeline::RunOptions options;
  options.config_path = path;
  options.command = "compress.run";
  options.output_override = output;
  options.overrides = overrides;
  options.threads = threads;
  options.force = force;
  options.resume = resume;
  options.progress = &sink;
  auto report = [&] {
    py::gil_scoped_release release;
    return ctk::pipeline::run_pipeline(config, options);
  }();
  ctk::set_interrupted(false);
  if (sink.failure) std::rethrow_exception(sink.failure);
  if (!report) raise(report.error());
  return ctk::exporter::to_json(*report);
}

// The command line; with `group` by all ranks of that process group. Ends the ranks it has joined.
int command_line(const std::vector<std::string>& words, const std::string& group, int here) {
  std::unique_ptr<ctk::Ranks> ranks;
  if (!group.empty()) ranks = unwrap(unwrap(ctk::train::load_trainer())->join(group, here));
  const int code = ctk::cli::command_line(words, ranks.get());
  std::fflush(stdout);
  return code;
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  module.doc() = "Bindings of the compress toolkit; use the package `compress`.";
  PYBIND11_CONSTINIT static py::gil_safe_call_once_and_store<py::object> error_type;
  error_type.call_once_and_store_result([&] { return py::exception<PythonError>(module, "Error"); });
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const PythonError& error) {
      py::object instance = error_type.get_stored()(error.what());
      instance.attr("code") = error.code;
      PyErr_SetObject(error_type.get_stored().ptr(), instance.ptr());
    }
  });
  module.def("command_line", &command_line, py::call_guard<py::gil_scoped_release>());
  module.def("version", [] { return CTK_VERSION; });
  py::class_<PyGraph>(module, "Graph")
      .def("inputs", &PyGraph::inputs)
      .def("outputs", &PyGraph::outputs)
      .def("layers", &PyGraph::layers)
      .def("run", &PyGraph::run, py::arg("inputs"), py::arg("threads") = 1)
      .def("text", &PyGraph::text);
  module.def("load", [](const std::string& path) {
    return std::make_unique<PyGraph>(unwrap(ctk::pipeline::load_model(path)));
  });
  py::class_<PyTokenizer>(module, "Tokenizer")
      .def("encode", &PyTokenizer::encode, py::arg("text"), py::arg("add_special_tokens"))
      .def("decode", &PyTokenizer::decode, py::arg("ids"), py::arg("skip_special_tokens"))
      .def("vocabulary_size", [](const PyTokenizer& self) { return self.get().vocabulary_size(); })
      .def("id_of", [](const PyTokenizer& self, const std::string& token) { return self.get().id_of(token); })
      .def("bos_id", [](const PyTokenizer& self) { return self.get().bos_id(); })
      .def("eos_id", [](const PyTokenizer& self) { return self.get().eos_id(); });
  module.def("open_tokenizer", [](const std::string& path) {
    return std::make_unique<PyTokenizer>(unwrap(ctk::data::open_tokenizer(path)));
  });
  module.def("chat_prompt",
             [](const std::string& source, const std::vector<std::pair<std::string, std::string>>& messages,
                const std::map<std::string, std::string>& tokens, bool add_generation_prompt) {
               std::vector<ctk::data::chat::Message> list;
               for (const auto& [role, content] : messages) list.push_back({role, content});
               const auto chat = unwrap(ctk::data::chat::ChatTemplate::parse(source));
               return unwrap(chat.render(list, tokens, add_generation_prompt));
             });
  module.def("run_file",
             [](const std::string& path, const std::string& output, const std::vector<std::string>& overrides,
                int threads, bool force, bool resume, py::object progress) {
               return run_config(unwrap(ctk::pipeline::load_config(path, overrides)), path, output, overrides, threads,
                                 force, resume, std::move(progress));
             });
  module.def("run_text",
             [](const std::string& text, const std::string& name, const std::string& folder, const std::string& output,
                const std::vector<std::string>& overrides, int threads, bool force, bool resume, py::object progress) {
               return run_config(unwrap(ctk::pipeline::parse_config_text(text, name, folder, overrides)), name, output,
                                 overrides, threads, force, resume, std::move(progress));
             });
}
