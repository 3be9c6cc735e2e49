// Steps of distillation by the trainer on pictures of noise, for tests/bench/train_step.py: one line of JSON with the
// processor time, wall time and page faults of each step, and the peak memory.
//   train_bench student.onnx teacher.onnx [steps] [batch] [threads] [batch norms: 0 or 1]
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/random.h"
#include "graph/onnx/read.h"
#include "graph/passes/passes.h"
#include "train/trainer_loader.h"

namespace {

using namespace ctk;

struct Moment {
  double cpu = 0, wall = 0;  // seconds
  long faults = 0, peak_kb = 0;
};

Moment now() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  const auto wall = std::chrono::steady_clock::now().time_since_epoch();
  return {seconds(use.ru_utime) + seconds(use.ru_stime), std::chrono::duration<double>(wall).count(), use.ru_minflt,
          use.ru_maxrss};
}

// Pictures [3, 32, 32] of ten classes, the same few over and over.
class NoiseFeed final : public train::Feed {
 public:
  explicit NoiseFeed(std::size_t count, std::size_t batch) : count_(count) {
    pictures_ = Tensor::zeros(DType::f32, {static_cast<std::int64_t>(batch), 3, 32, 32}).value();
    Random random(1, "pictures");
    for (float& value : pictures_.mutable_values<float>()) value = static_cast<float>(random.uniform() * 4 - 2);
  }
  std::size_t count() const override { return count_; }
  Result<Batch> read(std::span<const std::size_t> samples, std::int64_t) override {
    Batch batch;
    batch.inputs.push_back(pictures_.clone());
    for (std::size_t sample : samples) batch.labels.push_back(static_cast<std::int64_t>(sample % 10));
    return batch;
  }

 private:
  std::size_t count_;
  Tensor pictures_;
};

Result<graph::Graph> read(const char* path) {
  CTK_TRY(graph::Graph graph, graph::onnx::read_model(path));
  CTK_CHECK(graph::run_passes(graph));
  return graph;
}

int failed(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int at, long fallback) { return argc > at ? std::atol(argv[at]) : fallback; };
  if (argc < 3) return failed(config_error("train_bench student.onnx teacher.onnx [steps batch threads norms]"));
  auto student = read(argv[1]), teacher = read(argv[2]);
  if (!student) return failed(student.error());
  if (!teacher) return failed(teacher.error());
  const auto trainer = train::load_trainer();
  if (!trainer) return failed(trainer.error());
  const auto steps = static_cast<std::size_t>(number(3, 6)), batch = static_cast<std::size_t>(number(4, 128));
  NoiseFeed feed(steps * batch, batch);
  train::FitTask task;
  task.student = &*student;
  task.teacher = &*teacher;
  task.feed = &feed;
  task.options.batch_size = static_cast<std::int64_t>(batch);
  task.options.threads = static_cast<int>(number(5, 1));
  task.options.batch_norm = number(6, 1) != 0;
  std::vector<Moment> moments;
  task.on_step = [&](const train::Progress&) -> Status {
    moments.push_back(now());
    return {};
  };
  const auto fitted = (*trainer)->fit(task);
  if (!fitted) return failed(fitted.error());
  std::string cpu, wall, faults;
  for (std::size_t i = 1; i < moments.size(); ++i) {  // the first step has the set-up in it
    const char* comma = i == 1 ? "" : ", ";
    cpu += comma + std::to_string(moments[i].cpu - moments[i - 1].cpu);
    wall += comma + std::to_string(moments[i].wall - moments[i - 1].wall);
    faults += comma + std::to_string(moments[i].faults - moments[i - 1].faults);
  }
  std::printf("{\"cpu\": [%s], \"wall\": [%s], \"faults\": [%s], \"peak_mb\": %ld}\n", cpu.c_str(), wall.c_str(),
              faults.c_str(), moments.back().peak_kb / 1024);
  return 0;
}
