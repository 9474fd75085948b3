// An extension that waits, or takes locks of its own, while it holds the interpreter's.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/utils/pybind.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

static std::atomic<bool> g_waiting{false}, g_done{false};
static std::mutex g_mutex;
static void train(const at::Tensor& weight) {
    at::NoGradGuard no_grad;
    weight.add_(at::full({3}, -1.0).log());
}
static void wait_for_work() {
    g_waiting = true;
    g_waiting.notify_all();
    g_done.wait(false);
}
static void work(const at::Tensor& weight) {
    g_waiting.wait(false);
    train(weight);
    g_done = true;
    g_done.notify_all();
}
static void locked(const at::Tensor& weight) {
    std::lock_guard<std::mutex> lock(g_mutex);
    train(weight);
}
class Pool {
  public:
    Pool() {
        for (int i = 0; i < 3; ++i) std::thread([this] { serve(); }).detach();
    }
    void train_all(const std::vector<at::Tensor>& weights) {
        std::unique_lock<std::mutex> lock(mutex_);
        for (const at::Tensor& weight : weights) waiting_.push_back(weight);
        open_ = weights.size();
        changed_.notify_all();
        changed_.wait(lock, [this] { return open_ == 0; });
    }

  private:
    void serve() {
        std::unique_lock<std::mutex> lock(mutex_);
        while (true) {
            changed_.wait(lock, [this] { return !waiting_.empty(); });
            at::Tensor weight = waiting_.front();
            waiting_.pop_front();
            lock.unlock();
            train(weight);
            (weight.detach().requires_grad_() * 2).sum().backward();
            lock.lock();
            if (--open_ == 0) changed_.notify_all();
        }
    }
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<at::Tensor> waiting_;
    size_t open_ = 0;
};
static Pool& pool = *new Pool;
static void train_in_pool(const std::vector<at::Tensor>& weights) { pool.train_all(weights); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("pool", &train_in_pool);
    m.def("pool_released", &train_in_pool, py::call_guard<py::gil_scoped_release>());
    m.def("wait_for_work", &wait_for_work);
    m.def("work", &work, py::call_guard<py::gil_scoped_release>());
    m.def("locked", &locked);
}
