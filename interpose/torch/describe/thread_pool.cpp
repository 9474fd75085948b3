#include "interpose/torch/describe/thread_pool.h"

#include <ATen/Config.h>
#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>

// The runtime that torch itself is bound to, found as torch found it: an OpenMP of our own would bring a second pool.
extern "C" {
[[gnu::weak]] void GOMP_parallel(void (*work)(void*), void* data, unsigned threads, unsigned flags);
[[gnu::weak]] int omp_get_thread_num();
[[gnu::weak]] int omp_get_num_threads();
}

namespace numsan {
namespace {

/// A pool belongs to the thread that started it: the number of threads that this one was last sure to have.
thread_local int t_pool = 0;

struct Job {
    void (*work)(void* data, int part, int parts);
    void* data;
};

void run_part(void* data) {
    const Job& job = *static_cast<Job*>(data);
    job.work(job.data, omp_get_thread_num(), omp_get_num_threads());
}

}  // namespace

void note_pool_use(const Operator& op, int64_t numel) {
    // An element-wise op asks for the pool beyond one grain.
    if (!op.element_wise || numel <= at::internal::GRAIN_SIZE || at::in_parallel_region()) return;
    t_pool = at::get_num_threads();
}

bool share_work(void (*work)(void* data, int part, int parts), void* data) {
#if AT_PARALLEL_OPENMP
    if (t_pool <= 1 || at::in_parallel_region() || at::get_num_threads() != t_pool) return false;
    if (GOMP_parallel == nullptr || omp_get_thread_num == nullptr || omp_get_num_threads == nullptr) return false;
    Job job{work, data};
    GOMP_parallel(run_part, &job, 0, 0);
    return true;
#else
    return false;
#endif
}

}  // namespace numsan
