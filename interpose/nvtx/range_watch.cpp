#include "interpose/nvtx/range_watch.h"

#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "interpose/nvtx/kept_names.h"

namespace numsan {
namespace {

using namespace nvtx;

std::atomic<const RangeListener*> g_listener{nullptr};
std::atomic<RangeId> g_last_id{0};

const RangeListener& listener() { return *g_listener.load(std::memory_order_acquire); }

// ---- names ----

constexpr size_t kLongestName = 256;  ///< bytes
constexpr char kIgnored[] = "numsan:ignore";

// Never destroyed, and without a guard that a fork could find held.
constinit KeptNames g_domains;
constinit KeptNames g_registered;

std::string cut(std::string text) {
    if (text.size() <= kLongestName) return text;
    size_t end = kLongestName;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // not within a character
    text.resize(end);
    return text + "...";
}

/// The start of it is enough for cut().
std::string text_of(const char* name) {
    return name != nullptr ? cut(std::string(name, strnlen(name, kLongestName + 1))) : std::string();
}

/// A wchar_t is a code point here.
std::string text_of(const wchar_t* name) {
    std::string text;
    for (; name != nullptr && *name != 0 && text.size() <= kLongestName; ++name) {
        auto point = static_cast<uint32_t>(*name);
        if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) point = '?';  // no character
        if (point < 0x80) {
            text += static_cast<char>(point);
        } else if (point < 0x800) {
            text += {static_cast<char>(0xc0 | point >> 6), static_cast<char>(0x80 | (point & 0x3f))};
        } else if (point < 0x10000) {
            text += {static_cast<char>(0xe0 | point >> 12), static_cast<char>(0x80 | (point >> 6 & 0x3f)),
                     static_cast<char>(0x80 | (point & 0x3f))};
        } else {
            text += {static_cast<char>(0xf0 | point >> 18), static_cast<char>(0x80 | (point >> 12 & 0x3f)),
                     static_cast<char>(0x80 | (point >> 6 & 0x3f)), static_cast<char>(0x80 | (point & 0x3f))};
        }
    }
    return cut(std::move(text));
}

std::string text_of(const EventAttributes* event) {
    if (event == nullptr || event->size < sizeof *event) return {};  // of a version without messages
    switch (event->message_type) {
        case kAscii: return text_of(event->message.ascii);
        case kUnicode: return text_of(event->message.unicode);
        case kRegistered: {
            const auto* name = static_cast<const KeptName*>(event->message.registered);
            return name != nullptr ? name->text : std::string();
        }
        default: return {};
    }
}

struct RangeName {
    std::string text;
    bool ignored;
};

template <class Message>
RangeName name_of(Domain domain, const Message* message) {
    RangeName name{text_of(message), false};
    name.ignored = name.text == kIgnored;
    const auto* named = static_cast<const KeptName*>(domain);
    if (named != nullptr && !named->text.empty() && !name.text.empty()) name.text = named->text + ":" + name.text;
    return name;
}

// ---- what a copy of NVTX calls ----

template <class Message>
int push(Domain domain, const Message* message) {
    try {
        const RangeName name = name_of(domain, message);
        listener().push(reinterpret_cast<uint64_t>(domain), name.text.c_str(), name.ignored);
    } catch (...) {
        listener().push(reinterpret_cast<uint64_t>(domain), "", false);  // out of memory; its pop will come
    }
    return kNoPushPopTracking;
}

int pop(Domain domain) {
    listener().pop(reinterpret_cast<uint64_t>(domain));
    return kNoPushPopTracking;
}

template <class Message>
RangeId start(Domain domain, const Message* message) {
    const RangeId id = g_last_id.fetch_add(1, std::memory_order_relaxed) + 1;
    try {
        const RangeName name = name_of(domain, message);
        listener().start(id, name.text.c_str(), name.ignored);
    } catch (...) {
        // Out of memory: it is not known.
    }
    return id;
}

template <class Character>
void* kept(KeptNames& names, const Character* text) {
    try {
        return const_cast<KeptName*>(names.keep(text_of(text)));
    } catch (...) {
        return nullptr;
    }
}

int range_push_ex(const EventAttributes* event) { return push(nullptr, event); }
int range_push_a(const char* name) { return push(nullptr, name); }
int range_push_w(const wchar_t* name) { return push(nullptr, name); }
int range_pop() { return pop(nullptr); }
RangeId range_start_ex(const EventAttributes* event) { return start(nullptr, event); }
RangeId range_start_a(const char* name) { return start(nullptr, name); }
RangeId range_start_w(const wchar_t* name) { return start(nullptr, name); }
void range_end(RangeId id) { listener().stop(id); }

int domain_range_push_ex(Domain domain, const EventAttributes* event) { return push(domain, event); }
int domain_range_pop(Domain domain) { return pop(domain); }
RangeId domain_range_start_ex(Domain domain, const EventAttributes* event) { return start(domain, event); }
void domain_range_end(Domain, RangeId id) { listener().stop(id); }
StringHandle domain_register_string_a(Domain, const char* text) { return kept(g_registered, text); }
StringHandle domain_register_string_w(Domain, const wchar_t* text) { return kept(g_registered, text); }
Domain domain_create_a(const char* name) { return kept(g_domains, name); }
Domain domain_create_w(const wchar_t* name) { return kept(g_domains, name); }

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

bool watch_nvtx(GetExportTable get_export_table, const RangeListener& who) noexcept {
    const auto* callbacks = static_cast<const Callbacks*>(get_export_table(kCallbacks));
    if (callbacks == nullptr || callbacks->struct_size < sizeof(Callbacks)) return false;
    g_listener.store(&who, std::memory_order_release);
    kept(g_registered, kIgnored);  // it has room, however many others there will be
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
        {kDomainCreateA, plain(domain_create_a)},
        {kDomainCreateW, plain(domain_create_w)},
    };
    if (!fill(*callbacks, kCore, core, sizeof core / sizeof *core)) return false;
    fill(*callbacks, kCore2, with_domain, sizeof with_domain / sizeof *with_domain);
    return true;
}

}  // namespace numsan
