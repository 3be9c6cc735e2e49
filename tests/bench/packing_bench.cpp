// What packing weights at every start costs, beside what a cache of packed weights would: a file of as many bytes,
// mapped, its hash checked. One line for bytes that lie in memory, one for bytes read from the disk; least times of
// seven rounds, in milliseconds. A cache would stand in place of `pack`; the bundle is checked either way.
//   packing_bench model.ctkb [threads]
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/file.h"
#include "core/hash.h"
#include "core/parallel.h"
#include "core/random.h"
#include "graph/shapes.h"
#include "runtime/bundle.h"
#include "runtime/cpu_executor.h"

namespace {

using namespace ctk;

constexpr int kRounds = 7;

template <class Body>
double milliseconds(Body&& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

struct Times {
  double load = 1e9, pack = 1e9, plan = 1e9, cache = 1e9;
};

// Out of the system's memory, so that the next reader waits for the disk.
void forget(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY);
  ::fsync(file);
  ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  ::close(file);
}

std::unique_ptr<runtime::CpuExecutor> planned(const graph::Graph& graph,
                                              const std::shared_ptr<runtime::PackedWeights>& packed) {
  auto made = runtime::CpuExecutor::create(graph, graph::default_input_shapes(graph, 1), {{}, true, packed});
  if (made) return std::move(*made);
  std::fprintf(stderr, "%s\n", made.error().message.c_str());
  std::exit(3);
}

graph::Graph loaded(const std::string& bundle) {
  auto graph = runtime::load_bundle(bundle);
  if (graph) return std::move(*graph);
  std::fprintf(stderr, "%s\n", graph.error().message.c_str());
  std::exit(3);
}

void time_round(const std::string& bundle, const std::string& cache, bool from_disk, Times& least) {
  if (from_disk) forget(bundle);
  if (from_disk) forget(cache);
  graph::Graph graph;
  least.load = std::min(least.load, milliseconds([&] { graph = loaded(bundle); }));
  const auto packed = std::make_shared<runtime::PackedWeights>();
  const double whole = milliseconds([&] { planned(graph, packed); });
  const double plan = milliseconds([&] { planned(graph, packed); });
  least.pack = std::min(least.pack, whole - plan);
  least.plan = std::min(least.plan, plan);
  std::uint64_t hash = 0;
  const double check = milliseconds([&] { hash = hash64(MappedFile::open(cache).value().bytes()); });
  if (hash != 0) least.cache = std::min(least.cache, check);  // always: the hash must not be optimized away
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "packing_bench model.ctkb [threads]\n"), 2;
  const std::string bundle = argv[1], cache = bundle + ".packing_bench";
  set_threads(argc > 2 ? std::atoi(argv[2]) : 1);
  std::string bytes;
  {
    const graph::Graph graph = loaded(bundle);
    bytes.resize(planned(graph, std::make_shared<runtime::PackedWeights>())->packed_bytes());
  }
  Random random(1, "cache");
  for (char& byte : bytes) byte = static_cast<char>(random.next());
  if (const auto written = write_file(cache, bytes); !written) {
    std::fprintf(stderr, "%s\n", written.error().message.c_str());
    return 3;
  }
  for (const bool from_disk : {false, true}) {
    Times least;
    for (int round = 0; round < kRounds; ++round) time_round(bundle, cache, from_disk, least);
    std::printf("%.1f MB packed, %d threads, %s: load %.2f, pack %.2f, plan %.2f; a cache %.2f ms\n",
                static_cast<double>(bytes.size()) / 1e6, threads(), from_disk ? "from disk" : "in memory", least.load,
                least.pack, least.plan, least.cache);
  }
  ::unlink(cache.c_str());
}
