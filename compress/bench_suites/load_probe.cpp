#include "compress/bench_suites/load_probe.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <utility>

#include "core/parallel.h"
#include "core/tensor.h"
#include "runtime/bundle.h"
#include "runtime/cpu_executor.h"

namespace ctk::pipeline {
namespace {

// Fixed size, so that one message is one read and one write of a pipe.
struct Order {
  char path[1024] = {};
  std::int64_t dims[8] = {};
  std::size_t rank = 0;
  int threads = 1;
};
struct Answer {
  LoadFigure figure;
  char error[1024] = {};  // "" when it went well
};

template <class Message>
bool receive(int from, Message& message) {
  std::size_t done = 0;
  while (done < sizeof(message)) {
    const ssize_t count = ::read(from, reinterpret_cast<char*>(&message) + done, sizeof(message) - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return true;
}

template <class Message>
bool send(int to, const Message& message) {
  std::size_t done = 0;
  while (done < sizeof(message)) {
    const ssize_t count = ::write(to, reinterpret_cast<const char*>(&message) + done, sizeof(message) - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return true;
}

double peak_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes / 1024;
  }
  return 0;
}

Result<LoadFigure> load_and_run(const Order& order) {
  LoadFigure figure;
  figure.base_mb = peak_mb();
  set_threads(order.threads);
  const auto start = std::chrono::steady_clock::now();
  CTK_TRY(const graph::Graph graph, runtime::load_bundle(order.path));
  const Shape shape(order.dims, order.dims + order.rank);
  CTK_TRY(auto executor, runtime::CpuExecutor::create(graph, {shape}));
  CTK_TRY(const Tensor input, Tensor::zeros(DType::f32, shape));
  CTK_TRY(const auto outputs, executor->run(std::span(&input, 1)));
  figure.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  figure.peak_mb = peak_mb();
  return figure;
}

[[noreturn]] void serve(int from, int to) {
  Order order;
  if (!receive(from, order)) ::_exit(0);  // nothing to do: the parent has gone
  Answer answer;
  if (const auto figure = load_and_run(order)) {
    answer.figure = *figure;
  } else {
    std::strncpy(answer.error, figure.error().message.c_str(), sizeof(answer.error) - 1);
  }
  ::_exit(send(to, answer) ? 0 : 1);
}

Error refused(const char* what) {
  return input_error("bench: measuring a load: expected a " + std::string(what) + " from the system, found: " +
                     std::strerror(errno) + ". Raise the limits of this shell (ulimit), or close other programs");
}

}  // namespace

Result<LoadProbe> LoadProbe::start() {
  int there[2], back[2];
  if (::pipe(there) != 0) return refused("pipe");
  if (::pipe(back) != 0) {
    ::close(there[0]);
    ::close(there[1]);
    return refused("pipe");
  }
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(there[1]);
    ::close(back[0]);
    serve(there[0], back[1]);
  }
  ::close(there[0]);
  ::close(back[1]);
  if (child < 0) {
    ::close(there[1]);
    ::close(back[0]);
    return refused("process");
  }
  return LoadProbe(child, there[1], back[0]);
}

LoadProbe::LoadProbe(LoadProbe&& other) noexcept
    : child_(std::exchange(other.child_, -1)),
      to_(std::exchange(other.to_, -1)),
      from_(std::exchange(other.from_, -1)) {}

LoadProbe::~LoadProbe() {
  if (child_ < 0) return;
  ::close(to_);
  ::close(from_);
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<LoadFigure> LoadProbe::load(const std::string& bundle, const Shape& input, int threads) {
  Order order;
  if (bundle.size() >= sizeof(order.path) || input.size() > std::size(order.dims)) {
    return input_error("bench: measuring a load: expected a path below 1024 characters and a rank up to 8, found " +
                       std::to_string(bundle.size()) + " and " + std::to_string(input.size()) +
                       ". Set TMPDIR to a shorter path");
  }
  std::memcpy(order.path, bundle.data(), bundle.size());
  for (std::size_t i = 0; i < input.size(); ++i) order.dims[i] = input[i];
  order.rank = input.size();
  order.threads = threads;
  Answer answer;
  if (!send(to_, order) || !receive(from_, answer)) {
    return input_error(
        "bench: measuring a load: expected an answer of the process that loads, found that it ended. "
        "Look whether memory ran out");
  }
  if (answer.error[0] != 0) return input_error(answer.error);
  return answer.figure;
}

}  // namespace ctk::pipeline
