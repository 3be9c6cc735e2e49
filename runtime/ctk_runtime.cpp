#include "runtime/ctk_runtime.h"

#include <cstring>
#include <exception>
#include <new>

#include "core/parallel.h"
#include "graph/shapes.h"
#include "runtime/bundle.h"
#include "runtime/cpu_executor.h"

namespace {

struct LoadedGraph {
  ctk::graph::Graph graph;
  std::shared_ptr<ctk::runtime::PackedWeights> packed = std::make_shared<ctk::runtime::PackedWeights>();
};

thread_local std::string t_error;

ctk_status failed(ctk_status status, const std::string& message) noexcept {
  try {
    t_error = message;
  } catch (...) {
    t_error.clear();
  }
  return status;
}

ctk_status failed(const ctk::Error& error) noexcept {
  return failed(static_cast<ctk_status>(ctk::exit_code(error.code)), error.message);
}

// Runs what may throw; nothing it throws gets out.
template <class Body>
ctk_status guarded(Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return failed(CTK_INPUT, "out of memory");
  } catch (const std::exception& error) {
    return failed(CTK_INTERNAL, error.what());
  }
}

ctk_dtype dtype_of(ctk::DType dtype) {
  switch (dtype) {
    case ctk::DType::f32:
      return CTK_F32;
    case ctk::DType::i64:
      return CTK_I64;
    case ctk::DType::i32:
      return CTK_I32;
    case ctk::DType::u8:
      return CTK_U8;
    case ctk::DType::i8:
      return CTK_I8;
    case ctk::DType::boolean:
      return CTK_BOOL;
    default:
      return CTK_OTHER;
  }
}

ctk_status fill(const ctk::graph::Value& value, ctk::DType dtype, std::span<const std::int64_t> dims,
                ctk_tensor_info* info) {
  if (dims.size() > CTK_MAX_RANK) {
    return failed(CTK_INPUT,
                  "\"" + value.name + "\": expected at most 8 dimensions, found " + std::to_string(dims.size()));
  }
  ctk_tensor_info made{value.name.c_str(), dtype_of(dtype), dims.size(), {}, 0};
  bool is_fixed = true;
  std::size_t count = 1;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    made.dims[d] = dims[d];
    is_fixed = is_fixed && dims[d] >= 0;
    if (is_fixed) count *= static_cast<std::size_t>(dims[d]);
  }
  made.bytes = is_fixed ? ctk::byte_size(dtype, count) : 0;
  *info = made;
  return CTK_OK;
}

ctk_status wrong_index(const char* what, std::size_t index, std::size_t count) {
  return failed(CTK_CONFIG, std::string(what) + ": expected an index below " + std::to_string(count) + ", found " +
                                std::to_string(index));
}

}  // namespace

struct ctk_model {
  std::shared_ptr<const LoadedGraph> loaded;
};

struct ctk_instance {
  std::shared_ptr<const LoadedGraph> loaded;
  std::vector<ctk::Shape> input_shapes;
  std::unique_ptr<ctk::runtime::CpuExecutor> executor;
};

extern "C" {

const char* ctk_version(void) {
  return CTK_VERSION;
}

const char* ctk_last_error(void) {
  return t_error.c_str();
}

void ctk_set_threads(int threads) {
  ctk::set_threads(threads);
}

ctk_status ctk_load(const char* path, ctk_model** model) {
  if (path == nullptr || model == nullptr)
    return failed(CTK_CONFIG, "ctk_load: expected a path and a place, found NULL");
  return guarded([&] {
    auto graph = ctk::runtime::load_bundle(path);
    if (!graph) return failed(graph.error());
    auto loaded = std::make_shared<LoadedGraph>();
    loaded->graph = std::move(*graph);
    *model = new ctk_model{std::move(loaded)};
    return CTK_OK;
  });
}

void ctk_free_model(ctk_model* model) {
  delete model;
}

size_t ctk_input_count(const ctk_model* model) {
  return model->loaded->graph.inputs().size();
}

size_t ctk_output_count(const ctk_model* model) {
  return model->loaded->graph.outputs().size();
}

ctk_status ctk_input_info(const ctk_model* model, size_t index, ctk_tensor_info* info) {
  return guarded([&] {
    const auto& graph = model->loaded->graph;
    if (index >= graph.inputs().size()) return wrong_index("ctk_input_info", index, graph.inputs().size());
    const ctk::graph::Value& value = graph.value(graph.inputs()[index]);
    std::vector<std::int64_t> dims;
    if (value.shape) {
      for (const auto& dim : *value.shape) dims.push_back(dim.size);
    }
    return fill(value, value.dtype, dims, info);
  });
}

ctk_status ctk_create(const ctk_model* model, const int64_t* dims, ctk_instance** instance) {
  if (model == nullptr || instance == nullptr) {
    return failed(CTK_CONFIG, "ctk_create: expected a model and a place, found NULL");
  }
  return guarded([&] {
    const auto& graph = model->loaded->graph;
    std::vector<ctk::Shape> shapes = ctk::graph::default_input_shapes(graph, 1);
    for (ctk::Shape& shape : shapes) {
      for (std::int64_t& size : shape) {
        if (dims != nullptr) size = *dims++;
      }
    }
    if (auto fits = ctk::graph::check_input_shapes(graph, shapes); !fits) return failed(fits.error());
    auto executor = ctk::runtime::CpuExecutor::create(graph, shapes, {{}, true, model->loaded->packed});
    if (!executor) return failed(executor.error());
    *instance = new ctk_instance{model->loaded, std::move(shapes), std::move(*executor)};
    return CTK_OK;
  });
}

void ctk_free_instance(ctk_instance* instance) {
  delete instance;
}

ctk_status ctk_instance_input(const ctk_instance* instance, size_t index, ctk_tensor_info* info) {
  return guarded([&] {
    const auto& graph = instance->loaded->graph;
    if (index >= graph.inputs().size()) return wrong_index("ctk_instance_input", index, graph.inputs().size());
    const ctk::graph::Value& value = graph.value(graph.inputs()[index]);
    return fill(value, value.dtype, instance->input_shapes[index], info);
  });
}

ctk_status ctk_instance_output(const ctk_instance* instance, size_t index, ctk_tensor_info* info) {
  return guarded([&] {
    const auto& graph = instance->loaded->graph;
    if (index >= graph.outputs().size()) return wrong_index("ctk_instance_output", index, graph.outputs().size());
    const ctk::runtime::Plan& plan = instance->executor->plan();
    return fill(graph.value(graph.outputs()[index]), plan.output_dtypes[index], plan.output_shapes[index], info);
  });
}

size_t ctk_activation_bytes(const ctk_instance* instance) {
  return instance->executor->activation_bytes();
}

size_t ctk_packed_bytes(const ctk_instance* instance) {
  return instance->executor->packed_bytes();
}

ctk_status ctk_run(ctk_instance* instance, const void* const* inputs, void* const* outputs) {
  return guarded([&] {
    const ctk::runtime::Plan& plan = instance->executor->plan();
    void* const* slots = instance->executor->context().slots;
    const auto& graph = instance->loaded->graph;
    for (std::size_t i = 0; i < plan.input_slots.size(); ++i) {
      const ctk::DType dtype = graph.value(graph.inputs()[i]).dtype;
      const std::size_t bytes = ctk::byte_size(dtype, ctk::elements(instance->input_shapes[i]));
      if (bytes != 0) std::memcpy(slots[plan.input_slots[i]], inputs[i], bytes);
    }
    if (auto status = instance->executor->run_steps(); !status) return failed(status.error());
    for (std::size_t i = 0; i < plan.output_slots.size(); ++i) {
      const std::size_t bytes = ctk::byte_size(plan.output_dtypes[i], ctk::elements(plan.output_shapes[i]));
      if (bytes != 0) std::memcpy(outputs[i], slots[plan.output_slots[i]], bytes);
    }
    return CTK_OK;
  });
}

}  // extern "C"
