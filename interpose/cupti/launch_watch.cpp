#include "interpose/cupti/launch_watch.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "cuda/kernel/scan_table.h"
#include "host/base/cupti_places.h"

namespace numsan {
namespace {

enum class Launch { Kernel, Configured, Several, Graph };
struct LaunchCallback {
    uint32_t id;
    Launch what;
    bool of_thread;  ///< null is the thread's own stream
};
constexpr LaunchCallback kLaunches[] = {
#define NUMSAN_LAUNCH_CALLBACK(call, number, what) {number, Launch::what, std::string_view(#call).ends_with("_ptsz")},
#include "interpose/cupti/launch_callbacks.def"
#undef NUMSAN_LAUNCH_CALLBACK
};

const LaunchCallback* launch_of(uint32_t id) noexcept {
    for (const LaunchCallback& launch : kLaunches) {
        if (launch.id == id) return &launch;
    }
    return nullptr;
}

/// A launch of a kernel on one device.
LoggedLaunch logged(const cupti::CallbackData& call, Launch what, int name) noexcept {
    LoggedLaunch launch{};
    launch.call = call.function_name;
    launch.name = name;
    launch.correlation_id = call.correlation_id;
    const auto take = [&](const auto& given) {
        std::copy_n(given.grid, 3, launch.grid);
        std::copy_n(given.block, 3, launch.block);
        launch.shared_bytes = given.shared_bytes;
        launch.stream = reinterpret_cast<uint64_t>(given.stream);
    };
    if (call.function_params == nullptr) return launch;
    if (what == Launch::Kernel) take(*static_cast<const cupti::LaunchParams*>(call.function_params));
    if (what == Launch::Configured) take(*static_cast<const cupti::LaunchExParams*>(call.function_params)->config);
    return launch;
}

WatchedLaunch watched(const cupti::CallbackData& call, const LaunchCallback& launch) noexcept {
    WatchedLaunch seen{call.symbol_name, nullptr, nullptr};
    if (call.function_params == nullptr) return seen;
    if (launch.what == Launch::Kernel) {
        const auto& given = *static_cast<const cupti::LaunchParams*>(call.function_params);
        seen.arguments = given.arguments;
        seen.stream = given.stream;
    } else {
        const auto& given = *static_cast<const cupti::LaunchExParams*>(call.function_params);
        seen.arguments = given.arguments;
        seen.stream = given.config->stream;
    }
    if (seen.stream == nullptr && launch.of_thread) seen.stream = cupti::kThreadStream;
    return seen;
}

/// At the exit of a call.
bool succeeded(const cupti::CallbackData& call) noexcept {
    return call.return_value != nullptr && *static_cast<const int*>(call.return_value) == 0;
}

thread_local constinit bool own_calls = false;  ///< what calls of the driver's the thread makes are numsan's own

bool is_own_kernel(const char* name) noexcept {
    return name != nullptr && std::any_of(std::begin(gpu::kKernelNames), std::end(gpu::kKernelNames),
                                          [&](const char* own) { return std::strcmp(name, own) == 0; });
}

/// The file of a CUPTI of another version that the process has: two of them do not go together. "" without one.
std::string other_cupti() {
    std::string found;
    const auto look = [](dl_phdr_info* object, size_t, void* data) {
        const char* slash = std::strrchr(object->dlpi_name, '/');
        const char* name = slash != nullptr ? slash + 1 : object->dlpi_name;
        if (std::strncmp(name, "libcupti.so", 11) == 0) *static_cast<std::string*>(data) = object->dlpi_name;
        return 0;
    };
    dl_iterate_phdr(look, &found);
    return found;
}

void* load_cupti() {
    if (void* library = dlopen(kCuptiName, RTLD_NOW | RTLD_LOCAL)) return library;
    for (const std::string& folder : cupti_folders()) {
        if (void* library = dlopen((folder + "/" + kCuptiName).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    }
    return nullptr;
}

template <class Function>
bool find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
}

}  // namespace

std::string demangled(const std::string& name) {
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                           std::free);
    return status == 0 && text != nullptr ? std::string(text.get()) : name;
}

OwnCalls::OwnCalls() noexcept : before_(std::exchange(own_calls, true)) {}

OwnCalls::~OwnCalls() { own_calls = before_; }

LaunchWatch& launch_watch() {
    static LaunchWatch* watch = new LaunchWatch;
    return *watch;
}

/// On the thread that calls the driver, inside it: no lock, no call of another library, and no allocation but that of
/// the thread's own memory at its first launch, where it has run no op before. A listener may do more.
void LaunchWatch::on_callback(void* self, int domain, uint32_t id, const void* data) {
    const auto& call = *static_cast<const cupti::CallbackData*>(data);
    if (domain != cupti::kDriverApi || own_calls) return;
    LaunchWatch& watch = *static_cast<LaunchWatch*>(self);
    const LaunchCallback* launch = launch_of(id);
    if (launch == nullptr) {
        watch.on_memory_call(id, call);
        return;
    }
    const bool graph = launch->what == Launch::Graph;  // it has no kernel's name
    const bool described = launch->what == Launch::Kernel || launch->what == Launch::Configured;
    if (!graph && is_own_kernel(call.symbol_name)) return;
    DriverListener* const listener = watch.listening();
    if (call.site != cupti::kExit) {
        if (listener == nullptr || !described) return;
        const OwnCalls own;
        listener->before_launch(watched(call, *launch));
        return;
    }
    if (!succeeded(call)) return;
    const int name = watch.launches_.count(graph ? "(a CUDA graph)" : call.symbol_name);
    const uint64_t number = watch.log_.count();
    if (described && watch.logs_.load(std::memory_order_relaxed)) watch.log_.add(logged(call, launch->what, name));
    if (listener == nullptr) return;
    const OwnCalls own;
    if (!described) return listener->after_other_launch();
    WatchedLaunch seen = watched(call, *launch);
    seen.launches = watch.log_.since(number);
    listener->after_launch(seen);
}

void LaunchWatch::on_memory_call(uint32_t id, const cupti::CallbackData& call) noexcept {
    DriverListener* const listener = listening();
    if (listener == nullptr) return;
    // Once it has been freed another thread may have been given it.
    const bool at_exit = !cupti::is_free(id);
    if ((call.site == cupti::kExit) != at_exit || (at_exit && !succeeded(call))) return;
    const std::optional<cupti::MemoryCall> memory = cupti::memory_call(id, call.function_params);
    if (!memory) return;
    const OwnCalls own;
    listener->memory_call(*memory, call.function_name);
}

std::vector<LoggedLaunch> LaunchWatch::launches_of(const LaunchSpan& span) const {
    if (forked_.load(std::memory_order_relaxed)) return {};
    {
        const std::lock_guard lock(kept_mutex_);
        if (const auto kept = kept_.find({span.first, span.thread}); kept != kept_.end()) return kept->second;
    }
    return log_.of(span);
}

std::string LaunchWatch::kernel_of(const LoggedLaunch& launch) const {
    return launch.name < 0 ? "(a kernel whose name found no room)" : demangled(launches_.name(launch.name));
}

void LaunchWatch::keep(const LaunchSpan& span) {
    if (forked_.load(std::memory_order_relaxed) || span.empty()) return;
    std::vector<LoggedLaunch> found = log_.of(span);
    if (found.empty()) return;
    const std::lock_guard lock(kept_mutex_);
    while (kept_.size() >= kMostKept) kept_.erase(kept_.begin());
    kept_[{span.first, span.thread}] = std::move(found);
}

bool LaunchWatch::open() {
    void* library = dlopen(kCuptiName, RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) {
        if (const std::string other = other_cupti(); !other.empty()) {
            why_ = "another version of CUPTI is loaded: " + other;
            return false;
        }
        library = load_cupti();
    }
    if (library == nullptr) {
        why_ = std::string("CUPTI (") + kCuptiName + ") is not there";
        return false;
    }
    if (find(library, "cuptiSubscribe_v2", calls_.subscribe) && find(library, "cuptiUnsubscribe", calls_.unsubscribe) &&
        find(library, "cuptiEnableCallback", calls_.enable) && find(library, "cuptiGetResultString", calls_.text))
        return true;
    why_ = "this CUPTI lacks a function of 13.0's";
    return false;
}

std::string LaunchWatch::text_of(cupti::Result result) const {
    const char* text = nullptr;
    const bool known = calls_.text(result, &text) == cupti::kSuccess && text != nullptr;
    return (known ? std::string(text) + " (" : std::string("error (")) + std::to_string(result) + ")";
}

bool LaunchWatch::subscribe(std::string& why) {
    char old[4 * cupti::kOldSubscriberNameBytes] = "";
    cupti::SubscriberParams parameters{};
    parameters.struct_size = sizeof parameters;
    parameters.subscriber_name = "numsan";
    parameters.old_subscriber_name = old;
    parameters.old_subscriber_size = sizeof old;
    const cupti::Result result = calls_.subscribe(&subscriber_, on_callback, this, &parameters);
    if (result == cupti::kMultipleSubscribers) {
        why = std::string("CUPTI is taken by ") + (old[0] != '\0' ? old : "another tool");
        return false;
    }
    if (result != cupti::kSuccess) {
        why = "CUPTI refused: " + text_of(result);
        return false;
    }
    for (const LaunchCallback& launch : kLaunches) {
        if (!enable(launch.id, why)) return false;
    }
    for (int i = 0; listener_ != nullptr && i < cupti::kMemoryCallbackCount; ++i) {
        if (!enable(cupti::kMemoryCallbacks[i], why)) return false;
    }
    watching_.store(true, std::memory_order_release);
    return true;
}

/// False: not subscribed any more.
bool LaunchWatch::enable(uint32_t id, std::string& why) {
    const cupti::Result enabled = calls_.enable(1, subscriber_, cupti::kDriverApi, id);
    if (enabled == cupti::kSuccess) return true;
    calls_.unsubscribe(subscriber_);
    why = "CUPTI refused: " + text_of(enabled);
    return false;
}

bool LaunchWatch::start() noexcept {
    if (forked_.load(std::memory_order_relaxed)) return false;
    try {
        const std::lock_guard lock(mutex_);
        return !given_up_ && !watching() && open() && subscribe(why_);
    } catch (...) {
        return false;  // out of memory: why() has nothing to say it with
    }
}

void LaunchWatch::yield(bool for_good) noexcept {
    if (forked_.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(mutex_);
    given_up_ = given_up_ || for_good;
    if (!watching()) return;
    watching_.store(false, std::memory_order_release);
    gaps_.store(true, std::memory_order_relaxed);
    calls_.unsubscribe(subscriber_);
    if (DriverListener* const listener = listening()) listener->after_gap();
}

void LaunchWatch::take_again() noexcept {
    if (forked_.load(std::memory_order_relaxed)) return;
    try {
        const std::lock_guard lock(mutex_);
        std::string why;
        if (given_up_ || watching() || !has_gaps() || !subscribe(why)) return;
        if (DriverListener* const listener = listening()) listener->after_gap();
    } catch (...) {
        // There is a gap, which is reported.
    }
}

void LaunchWatch::after_fork_in_child() noexcept {
    forked_.store(true, std::memory_order_relaxed);
    watching_.store(false, std::memory_order_relaxed);
    launches_.clear();
}

std::string LaunchWatch::why() const {
    if (forked_.load(std::memory_order_relaxed)) return "";
    const std::lock_guard lock(mutex_);
    return why_;
}

}  // namespace numsan
