// libcupti.so.13 for the fake driver: one subscriber, callbacks of the driver's launches, and what a script says.
// FAKE_CUPTI="held=Nsight;cuptiEnableCallback=999": somebody outside the process is subscribed; a call fails with a
// CUptiResult.
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <bitset>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/fakes/cuda/launch_watch.h"

struct CUpti_Subscriber_st {
    CUpti_CallbackFunc callback;
    void* data;
    std::string name;
    std::atomic<bool> enabled[CUPTI_DRIVER_TRACE_CBID_SIZE];
};

namespace {

std::mutex g_mutex;
std::atomic<CUpti_SubscriberHandle> g_subscriber{nullptr};  // never freed: a callback may be under way

/// What the script has for `key`, "" for nothing.
std::string scripted(const std::string& key) {
    const char* script = std::getenv("FAKE_CUPTI");
    std::istringstream parts(script != nullptr ? script : "");
    std::string part;
    while (std::getline(parts, part, ';')) {
        if (part.rfind(key + "=", 0) == 0) return part.substr(key.size() + 1);
    }
    return "";
}

CUptiResult failure(const char* call) { return static_cast<CUptiResult>(std::atoi(scripted(call).c_str())); }

void on_launch(const fake_cuda::Launch& launch) {
    const CUpti_SubscriberHandle subscriber = g_subscriber;
    if (subscriber == nullptr || !subscriber->enabled[launch.callback]) return;
    CUpti_CallbackData data{};
    data.callbackSite = launch.result == nullptr ? CUPTI_API_ENTER : CUPTI_API_EXIT;
    data.functionName = launch.call;
    data.functionParams = launch.arguments;
    data.functionReturnValue = const_cast<CUresult*>(launch.result);
    data.context = launch.context;
    data.contextUid = launch.context_id;
    data.correlationData = launch.correlation_data;
    data.correlationId = launch.correlation_id;
    // The name is the subscriber's only while it is called.
    std::string name = launch.kernel != nullptr ? launch.kernel : "";
    data.symbolName = launch.kernel != nullptr ? name.c_str() : nullptr;
    subscriber->callback(subscriber->data, CUPTI_CB_DOMAIN_DRIVER_API, launch.callback, &data);
    std::fill(name.begin(), name.end(), '?');
}

bool watch_driver(fake_cuda::LaunchWatcher watcher) {
    void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (driver == nullptr) return false;
    using Watch = void (*)(fake_cuda::LaunchWatcher);
    const auto watch = reinterpret_cast<Watch>(dlsym(driver, "fake_cuda_watch_launches"));
    if (watch != nullptr) watch(watcher);
    return watch != nullptr;
}

bool usable(CUpti_SubscriberHandle subscriber) { return subscriber != nullptr && subscriber == g_subscriber; }

CUptiResult subscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback, void* data, const char* name,
                      std::string& old) {
    const std::lock_guard lock(g_mutex);
    if (subscriber == nullptr || callback == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    old = scripted("held");
    if (old.empty() && g_subscriber != nullptr) old = "CUPTI for " + g_subscriber.load()->name;
    if (!old.empty()) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    if (!watch_driver(on_launch)) return CUPTI_ERROR_UNKNOWN;
    // Kept for good: a launch that is on its way may still look at one that has unsubscribed.
    static auto* const kept = new std::vector<CUpti_SubscriberHandle>;
    kept->push_back(new CUpti_Subscriber_st{callback, data, name != nullptr ? name : "", {}});
    g_subscriber = *subscriber = kept->back();
    return CUPTI_SUCCESS;
}

constexpr struct {
    uint32_t id;
    const char* name;
} kNames[] = {
    {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, "cuLaunchKernel"},
    {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, "cuLaunchKernelEx"},
    {CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, "cuGraphLaunch"},
};

}  // namespace

extern "C" {

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback, void* data) {
    if (const CUptiResult result = failure("cuptiSubscribe")) return result;
    std::string old;
    return subscribe(subscriber, callback, data, nullptr, old);
}

CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback, void* data,
                              CUpti_SubscriberParams* parameters) {
    if (const CUptiResult result = failure("cuptiSubscribe_v2")) return result;
    if (parameters != nullptr && parameters->structSize != CUpti_SubscriberParams_STRUCT_SIZE)
        return CUPTI_ERROR_INVALID_PARAMETER;
    std::string old;
    const CUptiResult result =
        subscribe(subscriber, callback, data, parameters != nullptr ? parameters->subscriberName : nullptr, old);
    if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && parameters != nullptr &&
        parameters->oldSubscriberName != nullptr)
        std::snprintf(parameters->oldSubscriberName, parameters->oldSubscriberSize, "%s", old.c_str());
    return result;
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
    if (const CUptiResult result = failure("cuptiUnsubscribe")) return result;
    const std::lock_guard lock(g_mutex);
    if (!usable(subscriber)) return CUPTI_ERROR_INVALID_PARAMETER;
    g_subscriber = nullptr;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain,
                                CUpti_CallbackId id) {
    if (const CUptiResult result = failure("cuptiEnableCallback")) return result;
    if (!usable(subscriber) || id == 0 || id >= CUPTI_DRIVER_TRACE_CBID_SIZE) return CUPTI_ERROR_INVALID_PARAMETER;
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API) subscriber->enabled[id] = enable != 0;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain) {
    if (const CUptiResult result = failure("cuptiEnableDomain")) return result;
    if (!usable(subscriber)) return CUPTI_ERROR_INVALID_PARAMETER;
    if (domain != CUPTI_CB_DOMAIN_DRIVER_API) return CUPTI_SUCCESS;
    for (auto& one : subscriber->enabled) one = enable != 0;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t id, const char** name) {
    const auto* found =
        std::find_if(std::begin(kNames), std::end(kNames), [&](const auto& known) { return known.id == id; });
    if (domain != CUPTI_CB_DOMAIN_DRIVER_API || found == std::end(kNames)) return CUPTI_ERROR_INVALID_PARAMETER;
    *name = found->name;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
    switch (result) {
        case CUPTI_SUCCESS: *text = "CUPTI_SUCCESS"; return CUPTI_SUCCESS;
        case CUPTI_ERROR_INVALID_PARAMETER: *text = "CUPTI_ERROR_INVALID_PARAMETER"; return CUPTI_SUCCESS;
        case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
            *text = "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED";
            return CUPTI_SUCCESS;
        case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES: *text = "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"; return CUPTI_SUCCESS;
        case CUPTI_ERROR_UNKNOWN: *text = "CUPTI_ERROR_UNKNOWN"; return CUPTI_SUCCESS;
        default: return CUPTI_ERROR_INVALID_PARAMETER;
    }
}

CUptiResult cuptiFinalize() {
    if (const CUptiResult result = failure("cuptiFinalize")) return result;
    const std::lock_guard lock(g_mutex);
    g_subscriber = nullptr;
    watch_driver(nullptr);
    return CUPTI_SUCCESS;
}

// Their arguments are nobody's here.
#define FAKE_CUPTI_ACTIVITY_CALL(name) \
    CUptiResult name() { return CUPTI_ERROR_NOT_SUPPORTED; }
#include "tests/fakes/cupti/activity_calls.def"
#undef FAKE_CUPTI_ACTIVITY_CALL

/// Who is subscribed, "" nobody. Until the next call.
const char* fake_cupti_subscriber() {
    static std::string name;
    const std::lock_guard lock(g_mutex);
    name = g_subscriber != nullptr ? g_subscriber.load()->name : "";
    return name.c_str();
}

}  // extern "C"
