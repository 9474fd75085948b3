#include "host/stacks/open_ranges.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>
#include <utility>

namespace numsan {
namespace {

uint64_t hash_inside(uint64_t outer, const std::string& name) {
    constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio
    return (outer ^ std::hash<std::string>{}(name)) * kGolden + 1;
}

bool is_ignored(const char* name) { return std::strcmp(name, kIgnoredRange) == 0; }

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
        thread.path = 0;  // out of memory: where the program is is not known until the next range
    }
}

void OpenRanges::push(ThreadRanges& thread, const RangeEvent& event) {
    if (thread.pushed == nullptr) thread.pushed = new std::vector<OpenRange>;
    std::vector<OpenRange>& open = *thread.pushed;
    if (open.size() >= kMostPushed) {
        ++thread.deeper;
        return;
    }
    const bool ignored = is_ignored(event.name);
    open.push_back({event.key, ignored, ignored ? "" : event.name, nullptr});
    if (ignored) ++thread.ignored;
    OpenRange& range = open.back();
    if (open.size() > 1) range.path = open[open.size() - 2].path;
    if (!range.name.empty()) {
        const std::lock_guard<std::mutex> lock(mutex_);
        range.path = inside(range.path, range.name);
    }
    thread.path = range.path != nullptr ? range.path->id : 0;
}

void OpenRanges::pop(ThreadRanges& thread, uint64_t domain) {
    if (thread.deeper > 0) {
        --thread.deeper;
        return;
    }
    if (thread.pushed == nullptr) return;  // more pops than pushes
    std::vector<OpenRange>& open = *thread.pushed;
    const auto last =
        std::find_if(open.rbegin(), open.rend(), [domain](const OpenRange& range) { return range.domain == domain; });
    if (last == open.rend()) return;
    if (last->ignored) --thread.ignored;
    auto at = open.erase(std::next(last).base());
    if (at != open.end()) {  // domains need not be inside each other
        const std::lock_guard<std::mutex> lock(mutex_);
        for (PathPointer outer = at != open.begin() ? std::prev(at)->path : nullptr; at != open.end(); ++at) {
            if (!at->name.empty()) outer = inside(outer, at->name);
            at->path = outer;
        }
    }
    thread.path = !open.empty() && open.back().path != nullptr ? open.back().path->id : 0;
    if (!open.empty()) return;
    delete std::exchange(thread.pushed, nullptr);  // a thread that ends owns nothing
}

void OpenRanges::start(const RangeEvent& event) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (started_.size() >= kMostStarted) return;
    const bool ignored = is_ignored(event.name);
    started_.push_back({event.key, ignored, ignored ? "" : event.name});
    if (ignored) ignoring_.fetch_add(1, std::memory_order_relaxed);
    follow_started();
}

void OpenRanges::stop(uint64_t key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at =
        std::find_if(started_.begin(), started_.end(), [key](const Started& range) { return range.key == key; });
    if (at == started_.end()) return;
    if (at->ignored) ignoring_.fetch_sub(1, std::memory_order_relaxed);
    started_.erase(at);
    follow_started();
}

void OpenRanges::follow_started() {
    started_path_.store(0, std::memory_order_relaxed);
    started_names_ = nullptr;
    PathPointer path;
    for (const Started& range : started_) {
        if (!range.name.empty()) path = inside(path, range.name);
    }
    started_names_ = std::move(path);
    if (started_names_ != nullptr) started_path_.store(started_names_->id, std::memory_order_relaxed);
}

/// A hash that two paths share would give one the names of the other: they are compared. Such a path has no name.
OpenRanges::PathPointer OpenRanges::inside(const PathPointer& outer, const std::string& name) {
    const uint64_t hash = hash_inside(outer != nullptr ? outer->hash : 0, name);
    if (const auto known = by_hash_.find(hash); known != by_hash_.end()) {
        const PathPointer& path = paths_.at(known->second);
        return path->names.front() == name ? path : outer;
    }
    if (paths_.size() >= kMostPaths) forget_oldest();
    if (paths_.size() >= kMostPaths) return outer;  // all are open
    auto made = std::make_shared<Path>(Path{last_ + 1, hash, {name}});
    const size_t more = outer != nullptr ? std::min(outer->names.size(), kMostNames - 1) : 0;
    if (more > 0) made->names.insert(made->names.end(), outer->names.begin(), outer->names.begin() + ptrdiff_t(more));
    by_hash_.emplace(hash, made->id);
    try {
        paths_.emplace(made->id, made);
    } catch (...) {
        by_hash_.erase(hash);
        throw;
    }
    last_ = made->id;
    return made;
}

/// A quarter of them, those of open ranges left out.
void OpenRanges::forget_oldest() {
    size_t wanted = kMostPaths / 4;
    for (auto at = paths_.begin(); at != paths_.end() && wanted > 0;) {
        if (at->second.use_count() > 1) {
            ++at;
            continue;
        }
        by_hash_.erase(at->second->hash);
        at = paths_.erase(at);
        --wanted;
    }
}

std::vector<std::string> OpenRanges::names(const RangePath& path) const {
    std::vector<std::string> names;
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const RangeId id : {path.started, path.pushed}) {
        const auto at = paths_.find(id);
        if (at == paths_.end()) continue;
        names.insert(names.end(), at->second->names.rbegin(), at->second->names.rend());
    }
    return names;
}

}  // namespace numsan
