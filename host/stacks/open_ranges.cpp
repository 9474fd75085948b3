#include "host/stacks/open_ranges.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

namespace numsan {
namespace {

uint64_t hash_inside(uint64_t outer, const std::string& name) {
    if (name.empty()) return outer;
    constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio
    return std::max<uint64_t>((outer ^ std::hash<std::string>{}(name)) * kGolden + 1, 1);
}

/// The innermost of them that have one.
template <class Ranges>
std::vector<std::string> names_of(const Ranges& ranges) {
    std::vector<std::string> names;
    for (auto range = ranges.rbegin(); range != ranges.rend() && names.size() < OpenRanges::kMostNames; ++range) {
        if (!range->name.empty()) names.push_back(range->name);
    }
    std::reverse(names.begin(), names.end());
    return names;
}

}  // namespace

void OpenRanges::take(ThreadRanges& thread, const RangeEvent& event) noexcept {
    try {
        switch (event.kind) {
            case RangeEvent::Kind::Push: return push(thread, event);
            case RangeEvent::Kind::Pop: return pop(thread, event.key);
            case RangeEvent::Kind::Start: return start(event);
            case RangeEvent::Kind::Stop: return stop(event.key);
        }
    } catch (...) {
        if (event.kind == RangeEvent::Kind::Push || event.kind == RangeEvent::Kind::Pop) forget(thread);
    }
}

/// Depth and ignored_from stay, so that what is ignored ends where it should.
void OpenRanges::forget(ThreadRanges& thread) noexcept {
    if (thread.path != 0) {
        const std::lock_guard<std::mutex> lock(mutex_);
        leave(std::exchange(thread.path, 0));
    }
    thread.nameless = thread.depth > 0;
    if (thread.pushed == nullptr) return;
    delete std::exchange(thread.pushed, nullptr);
    threads_.fetch_sub(1, std::memory_order_relaxed);
}

void OpenRanges::push(ThreadRanges& thread, const RangeEvent& event) {
    if (event.ignored && thread.ignored_from < 0) thread.ignored_from = thread.depth;
    ++thread.depth;
    if (thread.nameless || thread.depth > int64_t(kMostPushed)) return;
    if (thread.pushed == nullptr) {
        if (threads_.load(std::memory_order_relaxed) >= kMostThreads) return forget(thread);
        thread.pushed = new std::vector<OpenRange>;
        threads_.fetch_add(1, std::memory_order_relaxed);
    }
    std::vector<OpenRange>& open = *thread.pushed;
    OpenRange range{event.key, event.ignored, event.ignored ? "" : event.name, 0};
    range.hash = hash_inside(open.empty() ? 0 : open.back().hash, range.name);
    open.push_back(std::move(range));
    follow_thread(thread);
}

void OpenRanges::pop(ThreadRanges& thread, uint64_t domain) {
    if (thread.depth == 0) return;                                 // more pops than pushes
    if (thread.nameless || thread.depth > int64_t(kMostPushed)) {  // domains are taken to be inside each other
        if (--thread.depth == thread.ignored_from) thread.ignored_from = -1;
        thread.nameless = thread.nameless && thread.depth > 0;
        return;
    }
    std::vector<OpenRange>& open = *thread.pushed;
    const auto last =
        std::find_if(open.rbegin(), open.rend(), [domain](const OpenRange& range) { return range.domain == domain; });
    if (last == open.rend()) return;
    auto at = open.erase(std::next(last).base());
    --thread.depth;
    for (; at != open.end(); ++at) at->hash = hash_inside(at == open.begin() ? 0 : std::prev(at)->hash, at->name);
    const auto ignored = std::find_if(open.begin(), open.end(), [](const OpenRange& range) { return range.ignored; });
    thread.ignored_from = ignored == open.end() ? -1 : ignored - open.begin();
    if (open.empty()) return forget(thread);
    follow_thread(thread);
}

void OpenRanges::start(const RangeEvent& event) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (event.ignored) {
        if (ignored_.size() >= kMostIgnored) return;
        ignored_.push_back(event.key);
        ignoring_.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    if (started_.size() >= kMostStarted) started_.erase(started_.begin());
    started_.push_back({event.key, event.name});
    follow_started();
}

void OpenRanges::stop(uint64_t key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto at = std::find(ignored_.begin(), ignored_.end(), key); at != ignored_.end()) {
        ignored_.erase(at);
        ignoring_.fetch_sub(1, std::memory_order_relaxed);
        return;
    }
    const auto at =
        std::find_if(started_.begin(), started_.end(), [key](const Started& range) { return range.key == key; });
    if (at == started_.end()) return;
    started_.erase(at);
    follow_started();
}

/// The mutex is held.
void OpenRanges::follow_started() {
    uint64_t hash = 0;
    for (const Started& range : started_) hash = hash_inside(hash, range.name);
    // Other threads read it meanwhile: it is what it was, or what it will be.
    const RangeId left = started_path_.load(std::memory_order_relaxed);
    try {
        started_path_.store(enter(left, hash, started_), std::memory_order_relaxed);
    } catch (...) {
        started_path_.store(0, std::memory_order_relaxed);
        throw;
    }
}

void OpenRanges::follow_thread(ThreadRanges& thread) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const RangeId left = std::exchange(thread.path, 0);
    thread.path = enter(left, thread.pushed->back().hash, *thread.pushed);
}

/// The path of open ranges with this hash, in the place of the one that is left. The mutex is held.
template <class Ranges>
RangeId OpenRanges::enter(RangeId left, uint64_t hash, const Ranges& ranges) {
    leave(left);
    if (hash == 0) return 0;
    if (const auto known = by_hash_.find(hash); known != by_hash_.end()) {
        ++known->second->open;
        return known->second->id;
    }
    if (paths_.size() >= kMostPaths) make_room();
    do ++last_;
    while (last_ == 0 || by_id_.contains(last_));
    paths_.push_back({last_, hash, names_of(ranges), 1});
    const auto made = std::prev(paths_.end());
    try {
        by_hash_.emplace(hash, made);
        by_id_.emplace(last_, made);
    } catch (...) {
        by_hash_.erase(hash);
        paths_.pop_back();
        throw;
    }
    return last_;
}

void OpenRanges::leave(RangeId id) noexcept {
    const auto at = by_id_.find(id);
    if (at == by_id_.end()) return;
    --at->second->open;
    paths_.splice(paths_.end(), paths_, at->second);
}

/// Fewer are open than there are: see kMostThreads.
void OpenRanges::make_room() {
    while (paths_.front().open > 0) paths_.splice(paths_.end(), paths_, paths_.begin());
    by_hash_.erase(paths_.front().hash);
    by_id_.erase(paths_.front().id);
    paths_.pop_front();
}

std::vector<std::string> OpenRanges::names(const RangePath& path) const {
    std::vector<std::string> names;
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const RangeId id : {path.started, path.pushed}) {
        const auto at = by_id_.find(id);
        if (at != by_id_.end()) names.insert(names.end(), at->second->names.begin(), at->second->names.end());
    }
    return names;
}

}  // namespace numsan
