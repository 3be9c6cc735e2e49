/* Runs a bundle once on zeros, or on raw float32 files, and writes the first output's values.
 *
 *   cc run_bundle.c -lctk -o run_bundle && ./run_bundle out/model.ctkb picture.f32 */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/ctk_runtime.h"

static int give_up(const char* where) {
  fprintf(stderr, "run_bundle: %s: %s\n", where, ctk_last_error());
  return 1;
}

/* Fills `to` with the file's bytes, which must be exactly `bytes`. */
static int read_file(const char* path, void* to, size_t bytes) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) return 0;
  const size_t found = fread(to, 1, bytes, file);
  const int is_longer = fgetc(file) != EOF;
  fclose(file);
  return found == bytes && !is_longer;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: run_bundle MODEL.ctkb [INPUT.raw ...]\n");
    return 2;
  }
  ctk_model* model = NULL;
  if (ctk_load(argv[1], &model) != CTK_OK) return give_up(argv[1]);
  ctk_instance* instance = NULL;
  if (ctk_create(model, NULL, &instance) != CTK_OK) return give_up("planning");

  const size_t input_count = ctk_input_count(model), output_count = ctk_output_count(model);
  void** inputs = calloc(input_count, sizeof *inputs);
  void** outputs = calloc(output_count, sizeof *outputs);
  ctk_tensor_info info;
  for (size_t i = 0; i < input_count; ++i) {
    if (ctk_instance_input(instance, i, &info) != CTK_OK) return give_up("input");
    inputs[i] = calloc(1, info.bytes + 1);
    if ((int)i + 2 < argc && !read_file(argv[i + 2], inputs[i], info.bytes)) {
      fprintf(stderr, "run_bundle: %s: expected a file of %zu bytes for input \"%s\"\n", argv[i + 2], info.bytes,
              info.name);
      return 1;
    }
  }
  for (size_t i = 0; i < output_count; ++i) {
    if (ctk_instance_output(instance, i, &info) != CTK_OK) return give_up("output");
    outputs[i] = calloc(1, info.bytes + 1);
  }
  if (ctk_run(instance, (const void* const*)inputs, outputs) != CTK_OK) return give_up("running");

  ctk_instance_output(instance, 0, &info);
  if (info.dtype == CTK_F32) {
    const float* values = outputs[0];
    for (size_t i = 0; i < info.bytes / sizeof *values; ++i) printf("%.9g\n", values[i]);
  }
  for (size_t i = 0; i < input_count; ++i) free(inputs[i]);
  for (size_t i = 0; i < output_count; ++i) free(outputs[i]);
  free(inputs);
  free(outputs);
  ctk_free_instance(instance);
  ctk_free_model(model);
  return 0;
}
