/* The runtime as a library: loads a bundle (.ctkb, written by `compress run`) and runs it. Plain C; no exception leaves
 * it, nothing is printed, nothing ends the process.
 *
 *   ctk_model* model;       weights and graph, read-only, shared by any number of instances
 *   ctk_instance* instance; buffers for one stream of runs: one thread at a time
 *
 * Threads: every function may be called from any thread; two instances may run at the same time, and share one copy of
 * the weights. An instance must be used by one thread at a time. A model may be freed before its instances.
 *
 * Errors: functions return a status; ctk_last_error() says where, what was expected, what was found, what to do. On an
 * error nothing is returned through pointers, and nothing is leaked. */
#ifndef CTK_RUNTIME_H
#define CTK_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CTK_API __attribute__((visibility("default")))
#else
#define CTK_API
#endif

#define CTK_MAX_RANK 8

typedef struct ctk_model ctk_model;
typedef struct ctk_instance ctk_instance;

/* The same numbers as the exit codes of `compress`. */
typedef enum ctk_status {
  CTK_OK = 0,
  CTK_INTERNAL = 1, /* a fault of ours */
  CTK_CONFIG = 2,   /* wrong use; CTK_ISA names what the host has not */
  CTK_INPUT = 3     /* unusable file, shape or data; out of memory */
} ctk_status;

typedef enum ctk_dtype {
  CTK_F32 = 0,
  CTK_I64 = 1,
  CTK_I32 = 2,
  CTK_U8 = 3,
  CTK_I8 = 4,
  CTK_BOOL = 5,
  CTK_OTHER = 6
} ctk_dtype;

typedef struct ctk_tensor_info {
  const char* name; /* lives as long as the model or instance it was asked of */
  ctk_dtype dtype;
  size_t rank;
  int64_t dims[CTK_MAX_RANK]; /* -1: free, of models only */
  size_t bytes;               /* 0 where a dimension is free */
} ctk_tensor_info;

/* "0.1.0" */
CTK_API const char* ctk_version(void);
/* Of the calling thread's last failed call; "" when none failed. Lives until its next failed call. */
CTK_API const char* ctk_last_error(void);
/* Threads of one run, from the next one on; the default is 1. For the whole process. */
CTK_API void ctk_set_threads(int threads);

/* Maps and checks a bundle. */
CTK_API ctk_status ctk_load(const char* path, ctk_model** model);
CTK_API void ctk_free_model(ctk_model* model);
CTK_API size_t ctk_input_count(const ctk_model* model);
CTK_API size_t ctk_output_count(const ctk_model* model);
CTK_API ctk_status ctk_input_info(const ctk_model* model, size_t index, ctk_tensor_info* info);

/* Plans for these input shapes: dims of input 0, then of input 1, ..., each as many as its rank. NULL: the model's own
 * shapes, free dimensions 1. Packs the weights, unless an instance of this model with these layers did before. */
CTK_API ctk_status ctk_create(const ctk_model* model, const int64_t* dims, ctk_instance** instance);
CTK_API void ctk_free_instance(ctk_instance* instance);
/* Shapes of this instance, without free dimensions. */
CTK_API ctk_status ctk_instance_input(const ctk_instance* instance, size_t index, ctk_tensor_info* info);
CTK_API ctk_status ctk_instance_output(const ctk_instance* instance, size_t index, ctk_tensor_info* info);
/* Bytes of activations and scratch of this instance, and of packed weights, which instances share. */
CTK_API size_t ctk_activation_bytes(const ctk_instance* instance);
CTK_API size_t ctk_packed_bytes(const ctk_instance* instance);

/* One run. inputs[i] holds ctk_instance_input(i).bytes, row-major, in the byte order of the host; outputs[i] takes
 * ctk_instance_output(i).bytes. Allocates nothing. */
CTK_API ctk_status ctk_run(ctk_instance* instance, const void* const* inputs, void* const* outputs);

#ifdef __cplusplus
}
#endif
#endif
