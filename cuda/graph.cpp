// CUDA graphs: capturing what a thread queues, and replaying it.
#include "cuda/graph.h"

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "cuda/check.h"
#include "cuda/driver.h"
#include "cuda/memory.h"
#include "cuda/stream.h"

namespace cresset::cuda {
namespace {

// A generator that captured kernels draw from: how many numbers a replay takes, and where the
// device finds seed and offset.
struct Drawn {
  PhiloxGenerator* generator;
  uint64_t count = 0;
  uint64_t* place = nullptr;
};

struct Graph {
  int device = 0;
  PoolId pool;
  cudaStream_t stream = nullptr;
  cudaGraphExec_t exec = nullptr;
  std::vector<Drawn> drawn;

  ~Graph() {
    const DeviceScope scope(device);
    if (exec) cudaGraphExecDestroy(exec);
    for (Drawn& d : drawn) cudaFree(d.place);
    allocator(device).drop_pool(pool);
  }
};

struct Graphs {
  std::mutex mutex;
  std::unordered_map<int64_t, std::shared_ptr<Graph>> by_number;
  int64_t next = 1;
};
Graphs& graphs() {
  static auto* all = new Graphs;
  return *all;
}

std::shared_ptr<Graph> find_graph(int64_t number) {
  Graphs& all = graphs();
  std::lock_guard lock(all.mutex);
  auto found = all.by_number.find(number);
  CHECK(found != all.by_number.end(), Value, "CUDAGraph: the graph was reset or never captured");
  return found->second;
}

thread_local std::shared_ptr<Graph> capturing;

uint64_t* place_of(Graph& graph, PhiloxGenerator& generator, uint64_t count, uint64_t* taken) {
  for (Drawn& d : graph.drawn)
    if (d.generator == &generator) {
      *taken = d.count;
      d.count += count;
      return d.place;
    }
  const RelaxedCapture relaxed;
  void* place = nullptr;
  CUDA_CHECK(cudaMalloc(&place, 2 * sizeof(uint64_t)));
  graph.drawn.push_back({&generator, count, static_cast<uint64_t*>(place)});
  *taken = 0;
  return graph.drawn.back().place;
}

}  // namespace

PhiloxArgs draw_philox(PhiloxGenerator& generator, uint64_t count) {
  if (capturing) [[unlikely]] {
    PhiloxArgs args;
    args.captured = place_of(*capturing, generator, count, &args.offset);
    return args;
  }
  std::lock_guard lock(generator.mutex);
  PhiloxArgs args{nullptr, generator.seed, generator.offset};
  generator.offset += count;
  return args;
}

bool is_capturing() noexcept { return thread_state.capturing; }

void refuse_in_capture(const char* what, const char* why) {
  if (capturing) [[unlikely]]
    fail(ErrorKind::NotImplemented, "CUDA graph: ", what, " cannot be captured: it ", why);
}

int64_t begin_capture(int64_t share_pool_of) {
  CHECK(!capturing, Value, "CUDAGraph: this thread captures another graph already");
  auto graph = std::make_shared<Graph>();
  graph->device = current_device();
  graph->stream = current_stream();
  CHECK(graph->stream != default_stream(graph->device), Value,
        "CUDAGraph: expected a stream of its own to capture, got the default stream");
  Graphs& all = graphs();
  int64_t number;
  {
    std::lock_guard lock(all.mutex);
    number = all.next++;
  }
  graph->pool = {static_cast<uint64_t>(number), 0};
  if (share_pool_of) graph->pool = find_graph(share_pool_of)->pool;
  DeviceAllocator& memory = allocator(graph->device);
  memory.hold_pool(graph->pool, {});
  CUDA_CHECK(cudaStreamBeginCapture(graph->stream, cudaStreamCaptureModeThreadLocal));
  memory.begin_route({graph->pool, capture_number(graph->stream), {}});
  capturing = graph;
  thread_state.capturing = true;
  std::lock_guard lock(all.mutex);
  all.by_number[number] = std::move(graph);
  return number;
}

void end_capture(int64_t number, bool keep) {
  std::shared_ptr<Graph> graph = find_graph(number);
  CHECK(capturing == graph, Value, "CUDAGraph: this thread does not capture this graph");
  capturing = nullptr;
  thread_state.capturing = false;
  cudaGraph_t recorded = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(graph->stream, &recorded);
  allocator(graph->device).end_route(graph->pool);
  if (ended != cudaSuccess) cudaGetLastError();
  cudaError_t made = ended;
  if (keep && ended == cudaSuccess)
    made = cudaGraphInstantiate(&graph->exec, recorded, cudaGraphInstantiateFlagAutoFreeOnLaunch);
  if (recorded) cudaGraphDestroy(recorded);
  if (keep && made == cudaSuccess) return;
  destroy_graph(number);
  if (!keep) return;
  cudaGetLastError();
  CHECK(ended == cudaSuccess, NotImplemented,
        "CUDAGraph: something that was called cannot be captured: ", cudaGetErrorString(ended));
  CUDA_CHECK(made);
}

void replay_graph(int64_t number) {
  std::shared_ptr<Graph> graph = find_graph(number);
  CHECK(graph->exec, Value, "CUDAGraph: the capture has not ended");
  const DeviceScope scope(graph->device);
  cudaStream_t stream = current_stream(graph->device);
  for (const Drawn& d : graph->drawn) {
    uint64_t now[2];
    {
      std::lock_guard lock(d.generator->mutex);
      now[0] = d.generator->seed;
      now[1] = d.generator->offset;
      d.generator->offset += d.count;
    }
    // Pageable memory: the call has read it when it returns.
    CUDA_CHECK(cudaMemcpyAsync(d.place, now, sizeof(now), cudaMemcpyHostToDevice, stream));
  }
  CUDA_CHECK(cudaGraphLaunch(graph->exec, stream));
}

void destroy_graph(int64_t number) {
  Graphs& all = graphs();
  std::shared_ptr<Graph> dropped;
  std::lock_guard lock(all.mutex);
  auto found = all.by_number.find(number);
  if (found == all.by_number.end()) return;
  dropped = std::move(found->second);
  all.by_number.erase(found);
}

}  // namespace cresset::cuda
