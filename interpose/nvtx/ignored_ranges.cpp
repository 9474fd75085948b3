#include "interpose/nvtx/ignored_ranges.h"

#include <atomic>
#include <cstring>
#include <cwchar>

namespace numsan {
namespace {

using namespace nvtx;

std::atomic<const IgnoredRangeListener*> g_listener{nullptr};

const IgnoredRangeListener& listener() { return *g_listener.load(std::memory_order_acquire); }

bool is_ignored(const char* name) { return name != nullptr && std::strcmp(name, kIgnoredRange) == 0; }
bool is_ignored(const wchar_t* name) { return name != nullptr && std::wcscmp(name, L"numsan:ignore") == 0; }

/// Handle of the one string that is ours to know. All others get null, as without a tool.
char g_registered;

bool is_ignored(const EventAttributes* event) {
    if (event == nullptr || event->size < sizeof *event) return false;
    if (event->message_type == kAscii) return is_ignored(event->message.ascii);
    if (event->message_type == kUnicode) return is_ignored(event->message.unicode);
    return event->message_type == kRegistered && event->message.registered == &g_registered;
}

// ---- pushed and popped: a stack of each thread, all domains on one ----

struct Pushed {
    int64_t depth = 0;
    int64_t ignored_from = -1;  ///< depth of the outermost ignored range
};

Pushed& pushed() {
    static thread_local constinit Pushed mine;
    return mine;
}

int push(bool ignored) {
    Pushed& ranges = pushed();
    if (ignored && ranges.ignored_from < 0) {
        ranges.ignored_from = ranges.depth;
        listener().begin();
    }
    ++ranges.depth;
    return kNoPushPopTracking;
}

int pop() {
    Pushed& ranges = pushed();
    if (ranges.depth == 0) return kNoPushPopTracking;  // more pops than pushes
    if (--ranges.depth == ranges.ignored_from) {
        ranges.ignored_from = -1;
        listener().end();
    }
    return kNoPushPopTracking;
}

// ---- started and ended: of the process ----

constexpr int kMaxStarted = 64;  ///< at a time; further ones are not known
std::atomic<RangeId> g_started[kMaxStarted];
std::atomic<RangeId> g_last_id{0};

RangeId start(bool ignored) {
    if (!ignored) return 0;
    const RangeId id = g_last_id.fetch_add(1, std::memory_order_relaxed) + 1;
    for (std::atomic<RangeId>& slot : g_started) {
        RangeId none = 0;
        if (!slot.compare_exchange_strong(none, id)) continue;
        listener().begin_everywhere();
        return id;
    }
    return 0;
}

void end(RangeId id) {
    if (id == 0) return;
    for (std::atomic<RangeId>& slot : g_started) {
        RangeId wanted = id;
        if (!slot.compare_exchange_strong(wanted, 0)) continue;
        listener().end_everywhere();
        return;
    }
}

// ---- what a copy of NVTX calls ----

int range_push_ex(const EventAttributes* event) { return push(is_ignored(event)); }
int range_push_a(const char* name) { return push(is_ignored(name)); }
int range_push_w(const wchar_t* name) { return push(is_ignored(name)); }
int range_pop() { return pop(); }
RangeId range_start_ex(const EventAttributes* event) { return start(is_ignored(event)); }
RangeId range_start_a(const char* name) { return start(is_ignored(name)); }
RangeId range_start_w(const wchar_t* name) { return start(is_ignored(name)); }
void range_end(RangeId id) { end(id); }

int domain_range_push_ex(Domain, const EventAttributes* event) { return push(is_ignored(event)); }
int domain_range_pop(Domain) { return pop(); }
RangeId domain_range_start_ex(Domain, const EventAttributes* event) { return start(is_ignored(event)); }
void domain_range_end(Domain, RangeId id) { end(id); }
StringHandle domain_register_string_a(Domain, const char* text) { return is_ignored(text) ? &g_registered : nullptr; }
StringHandle domain_register_string_w(Domain, const wchar_t* text) {
    return is_ignored(text) ? &g_registered : nullptr;
}

template <class Call>
Function plain(Call* call) {
    return reinterpret_cast<Function>(call);
}

struct Entry {
    unsigned call;
    Function function;
};

bool fill(const Callbacks& callbacks, int module, const Entry* entries, size_t count) {
    FunctionTable table = nullptr;
    unsigned size = 0;
    if (callbacks.functions_of(module, &table, &size) == 0 || table == nullptr) return false;
    for (size_t i = 0; i < count; ++i) {
        if (entries[i].call < size && table[entries[i].call] != nullptr) *table[entries[i].call] = entries[i].function;
    }
    return true;
}

}  // namespace

bool watch_nvtx(GetExportTable get_export_table, const IgnoredRangeListener& who) noexcept {
    const auto* callbacks = static_cast<const Callbacks*>(get_export_table(kCallbacks));
    if (callbacks == nullptr || callbacks->struct_size < sizeof(Callbacks)) return false;
    g_listener.store(&who, std::memory_order_release);
    const Entry core[] = {
        {kRangeStartEx, plain(range_start_ex)}, {kRangeStartA, plain(range_start_a)},
        {kRangeStartW, plain(range_start_w)},   {kRangeEnd, plain(range_end)},
        {kRangePushEx, plain(range_push_ex)},   {kRangePushA, plain(range_push_a)},
        {kRangePushW, plain(range_push_w)},     {kRangePop, plain(range_pop)},
    };
    const Entry with_domain[] = {
        {kDomainRangeStartEx, plain(domain_range_start_ex)},
        {kDomainRangeEnd, plain(domain_range_end)},
        {kDomainRangePushEx, plain(domain_range_push_ex)},
        {kDomainRangePop, plain(domain_range_pop)},
        {kDomainRegisterStringA, plain(domain_register_string_a)},
        {kDomainRegisterStringW, plain(domain_register_string_w)},
    };
    if (!fill(*callbacks, kCore, core, sizeof core / sizeof *core)) return false;
    fill(*callbacks, kCore2, with_domain, sizeof with_domain / sizeof *with_domain);
    return true;
}

}  // namespace numsan
