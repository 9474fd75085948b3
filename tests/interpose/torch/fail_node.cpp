// The first time after arm() that numsan asks which backward pass runs, as it does of a node, torch throws.
#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstring>
#include <stdexcept>

namespace {
std::atomic<bool> armed{false};

int find_torch(dl_phdr_info* info, size_t, void* path) {
    if (info->dlpi_name == nullptr || std::strstr(info->dlpi_name, "libtorch_cpu.so") == nullptr) return 0;
    *static_cast<const char**>(path) = info->dlpi_name;
    return 1;
}

bool is_adapter(const void* caller) {
    Dl_info info;
    return dladdr(caller, &info) != 0 && std::strstr(info.dli_fname, "libnumsan_torch") != nullptr;
}
}  // namespace

extern "C" void arm() { armed = true; }

namespace torch::autograd {
__attribute__((visibility("default"))) int get_current_graph_task_id() {
    static const auto own = [] {
        const char* path = nullptr;
        dl_iterate_phdr(find_torch, &path);
        return reinterpret_cast<int (*)()>(
            dlsym(dlopen(path, RTLD_LAZY | RTLD_NOLOAD), "_ZN5torch8autograd25get_current_graph_task_idEv"));
    }();
    if (is_adapter(__builtin_return_address(0)) && armed.exchange(false)) throw std::runtime_error("no graph task");
    return own();
}
}  // namespace torch::autograd
