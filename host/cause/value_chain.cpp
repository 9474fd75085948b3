#include "host/cause/value_chain.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "host/cause/magnitude_history.h"

namespace numsan {
namespace {

using Record = Lineage::Record;
using Records = std::unordered_map<Lineage::WriteId, Record>;

constexpr size_t kMostBefore = 6;
constexpr size_t kMostAfter = 12;

ChainLink link_of(const Record& record, bool before, const Lineage& lineage, const StackSource* stacks) {
    ChainLink link;
    link.before = before;
    link.op = record.op->name;
    link.seq = record.seq;
    link.step = lineage.step_of(record.seq);
    link.dtype = record.dtype;
    link.bad = record.is_bad();
    if (record.was_read() && !link.bad) {
        link.absmax = magnitude_value(record.largest, record.dtype);
        if (record.smallest != ~uint64_t(0)) link.absmin = magnitude_value(record.smallest, record.dtype);
    }
    link.stack = KeptStack(record.stack, stacks);
    return link;
}

const Record* find(const Records& records, Lineage::WriteId id) {
    const auto found = records.find(id);
    return found == records.end() || found->second.op == nullptr ? nullptr : &found->second;
}

const Record* written_by(const Records& records, OpSeq seq, const std::string& op) {
    for (const auto& [id, record] : records) {
        if (record.seq == seq && record.op != nullptr && op == record.op->name) return &record;
    }
    return nullptr;
}

/// Of the same operator at the same line, up to op `seq`.
std::vector<PastMagnitude> history_of(const Record& of, const Records& records, const Lineage& lineage, size_t steps) {
    StepMagnitudes found;
    for (const auto& [id, record] : records) {
        if (record.op == of.op && record.stack == of.stack && record.seq <= of.seq)
            found.add(record, lineage, std::numeric_limits<int64_t>::max());
    }
    return found.listed(steps);
}

void add_before(std::vector<ChainLink>& chain, const Birth& birth, const Records& records, const Lineage& lineage,
                size_t steps, const StackSource* stacks) {
    const bool behind = !birth.node.empty() && birth.has_forward;
    if (!birth.node.empty() && !behind) return;
    const Record* at =
        written_by(records, behind ? birth.forward_seq : birth.seq, behind ? birth.forward_op : birth.op);
    while (at != nullptr && chain.size() < kMostBefore) {
        const Record* latest = nullptr;
        for (uint8_t i = 0; i < at->input_count; ++i) {
            const Record* input = find(records, at->inputs[i]);
            if (input != nullptr && input->seq < at->seq && (latest == nullptr || input->seq > latest->seq))
                latest = input;
        }
        if (latest != nullptr) {
            chain.push_back(link_of(*latest, true, lineage, stacks));
            chain.back().history = history_of(*latest, records, lineage, steps);
        }
        at = latest;
    }
    std::reverse(chain.begin(), chain.end());
}

void add_after(std::vector<ChainLink>& chain, const Birth& birth, OpSeq escape_seq, const Records& records,
               const Lineage& lineage, const StackSource* stacks) {
    std::vector<const Record*> later;
    std::unordered_map<Lineage::WriteId, const Record*> from;  // what holds the value -> what it read it from
    for (const auto& [id, record] : records) {
        if (record.op == nullptr || !record.is_bad()) continue;
        if (record.seq == birth.seq && birth.op == record.op->name) from.emplace(id, nullptr);
        if (record.seq > birth.seq && record.seq <= escape_seq) later.push_back(&record);
    }
    std::sort(later.begin(), later.end(), [](const Record* a, const Record* b) { return a->id < b->id; });
    const Record* last = nullptr;
    for (const Record* record : later) {
        for (uint8_t i = 0; i < record->input_count; ++i) {
            if (from.count(record->inputs[i]) == 0) continue;
            from.emplace(record->id, find(records, record->inputs[i]));
            last = record;
            break;
        }
    }
    std::vector<const Record*> way;
    for (const Record* at = last; at != nullptr && at->seq > birth.seq; at = from.at(at->id)) way.push_back(at);
    const size_t begin = way.size() > kMostAfter ? way.size() - kMostAfter : 0;  // the first ones after the birth
    for (size_t i = way.size(); i-- > begin;) chain.push_back(link_of(*way[i], false, lineage, stacks));
}

}  // namespace

std::vector<ChainLink> value_chain(const Birth& birth, const Lineage& lineage, OpSeq escape_seq, size_t steps,
                                   const StackSource* stacks) {
    std::vector<ChainLink> chain;
    if (steps == 0 || birth.op == "external" || birth.made_at) return chain;
    Records records;
    const OpSeq end = std::max(birth.seq, escape_seq);
    lineage.recent([&](const Record& record) {
        if (record.seq <= end) records.emplace(record.id, record);
    });
    add_before(chain, birth, records, lineage, steps, stacks);
    if (birth.kind != 0) add_after(chain, birth, escape_seq, records, lineage, stacks);
    return chain;
}

}  // namespace numsan
