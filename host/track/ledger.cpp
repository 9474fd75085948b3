#include "host/track/ledger.h"

#include <algorithm>
#include <iterator>

#include "host/base/coldest.h"
#include "host/base/tensor_bytes.h"

namespace numsan {
namespace {

bool shares_birth(const Ledger::Entry& a, const Ledger::Entry& b) {
    return std::any_of(std::begin(a.birth), std::end(a.birth), [&](BirthId id) {
        return id != 0 && std::find(std::begin(b.birth), std::end(b.birth), id) != std::end(b.birth);
    });
}

bool is_of(const Ledger::Entry& entry, const TensorView& tensor) {
    return entry.data == tensor.storage_data ||
           (entry.copied_to == tensor.storage_data && entry.bytes == tensor.storage_bytes);
}

}  // namespace

Ledger::Entry* Ledger::find(const TensorView& tensor) {
    const auto it = bad_.find(tensor.storage);
    if (it == bad_.end()) return nullptr;
    if (!is_of(it->second, tensor)) {
        bad_.erase(it);
        drop_presence(tensor.storage);
        return nullptr;
    }
    it->second.data = tensor.storage_data;
    note_use(it->second);
    return &it->second;
}

void Ledger::set(const TensorView& tensor, const Entry& entry) {
    if (entry.empty()) {
        clear(tensor);
        return;
    }
    if (bad_.size() >= room_ && bad_.count(tensor.storage) == 0) make_room();
    const auto [it, inserted] = bad_.try_emplace(tensor.storage);
    if (inserted) add_presence(tensor.storage);
    const Entry before = it->second;
    it->second = entry;
    if (before.data == tensor.storage_data && shares_birth(before, entry)) it->second.since = before.since;
    it->second.data = tensor.storage_data;
    it->second.bytes = tensor.storage_bytes;
    it->second.copied_to = nullptr;
    note_use(it->second);
}

void Ledger::make_room() {
    const size_t before = bad_.size();
    std::erase_if(bad_, [&](const auto& kept) {
        const bool old = step_ - kept.second.step_used > kStepsKept;
        if (old) drop_presence(kept.first);
        return old;
    });
    room_ = std::clamp(2 * bad_.size(), std::min(most_bad_, kManyBad), most_bad_);
    forgotten_ += static_cast<int64_t>(before - bad_.size());
    if (bad_.size() <= room_ - room_ / 4) return;  // else the next looks at all of them again soon
    forgotten_ += static_cast<int64_t>(forget_coldest(
        bad_, [](const Entry& kept) { return kept.used; }, [&](const void* storage) { drop_presence(storage); }));
}

void Ledger::clear(const TensorView& tensor) {
    if (bad_.erase(tensor.storage) != 0) drop_presence(tensor.storage);
}

Ledger::Contents Ledger::contents_of(const TensorView& tensor) const {
    Contents contents;
    if (const auto it = bad_.find(tensor.storage); it != bad_.end() && is_of(it->second, tensor))
        contents.births = it->second;
    if (const Unwritten* known = unwritten(tensor)) contents.unwritten = *known;
    if (const Received* known = received(tensor)) contents.received = *known;
    return contents;
}

void Ledger::adopt(const TensorView& tensor, const Contents& contents) {
    set(tensor, contents.births);
    if (received_.erase(tensor.storage) != 0) drop_presence(tensor.storage);
    if (unwritten_.erase(tensor.storage) != 0) drop_presence(tensor.storage);
    if (contents.received.op != nullptr) mark_received(tensor, contents.received);
    if (contents.unwritten.mark == 0) return;
    unwritten_[tensor.storage] = contents.unwritten;
    add_presence(tensor.storage);
}

void Ledger::mark_unwritten(const TensorView& tensor, StackId stack, OpSeq seq) {
    clear(tensor);
    if (received_.erase(tensor.storage) != 0) drop_presence(tensor.storage);
    const auto [it, inserted] = unwritten_.try_emplace(tensor.storage);
    it->second = {tensor.storage_data, stack, seq, ++marks_, tensor.storage_bytes, tensor.storage_bytes};
    if (inserted) add_presence(tensor.storage);
    unwritten_order_.emplace_back(tensor.storage, marks_);
    while (unwritten_order_.size() > kMaxUnwritten) {
        // What was written since is no longer in the map, or there under a later marking; the rest is the oldest
        // unwritten.
        const auto [storage, mark] = unwritten_order_.front();
        unwritten_order_.pop_front();
        const auto oldest = unwritten_.find(storage);
        if (oldest == unwritten_.end() || oldest->second.mark != mark) continue;
        unwritten_.erase(oldest);
        drop_presence(storage);
    }
}

const Ledger::Unwritten* Ledger::unwritten(const TensorView& tensor) const {
    const auto it = unwritten_.find(tensor.storage);
    return it != unwritten_.end() && it->second.data == tensor.storage_data ? &it->second : nullptr;
}

void Ledger::mark_received(const TensorView& tensor, const Received& received) {
    if (unwritten_.erase(tensor.storage) != 0) drop_presence(tensor.storage);
    if (received_.size() >= kMaxReceived) {
        forget_coldest(
            received_, [](const Received& kept) { return kept.seq; },
            [&](const void* storage) { drop_presence(storage); });
    }
    const auto [it, inserted] = received_.try_emplace(tensor.storage);
    it->second = received;
    it->second.data = tensor.storage_data;
    if (inserted) add_presence(tensor.storage);
}

const Ledger::Received* Ledger::received(const TensorView& tensor) const {
    const auto it = received_.find(tensor.storage);
    return it != received_.end() && it->second.data == tensor.storage_data ? &it->second : nullptr;
}

void Ledger::mark_written(const TensorView& tensor) {
    if (received_.erase(tensor.storage) != 0) drop_presence(tensor.storage);
    const auto it = unwritten_.find(tensor.storage);
    if (it == unwritten_.end()) return;
    it->second.missing -= bytes_of(tensor);
    if (it->second.missing > 0 && it->second.data == tensor.storage_data) return;
    unwritten_.erase(it);
    drop_presence(tensor.storage);
}

}  // namespace numsan
