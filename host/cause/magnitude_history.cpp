#include "host/cause/magnitude_history.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "host/base/value_classes.h"
#include "host/cause/measure.h"

namespace numsan {
namespace {

/// Of one step; `bad`: something in it was not finite, and what else there was is not remembered.
struct Largest {
    double absmax = 0;
    bool bad = false;
};

bool is_at(const Birth& birth, const Lineage::Record& record) {
    if (birth.in_place != nullptr) return record.storage == birth.in_place;
    const bool behind = !birth.node.empty();
    const std::string& op = behind ? birth.forward_op : birth.op;
    return record.op != nullptr && record.stack == (behind ? birth.forward_stack : birth.stack) &&
           op == record.op->name;
}

void add(std::map<int64_t, Largest>& found, int64_t step, const Lineage::Record& record) {
    Largest& largest = found[step];
    if (record.largest >= value_classes(info(record.dtype)).smallest_nonfinite()) {
        largest.bad = true;
    } else {
        largest.absmax = std::max(largest.absmax, magnitude_value(record.largest, record.dtype));
    }
}

std::vector<PastMagnitude> listed(const std::map<int64_t, Largest>& found) {
    std::vector<PastMagnitude> history;
    for (const auto& [step, largest] : found) {
        history.push_back({step, std::nullopt});
        if (!largest.bad) history.back().absmax = largest.absmax;
    }
    return history;
}

}  // namespace

std::vector<PastMagnitude> storage_history(const void* storage, const Lineage& lineage) {
    std::map<int64_t, Largest> found;
    lineage.recent([&](const Lineage::Record& record) {
        const int64_t step = record.storage == storage && record.smallest != 0 ? lineage.step_of(record.seq) : -1;
        if (step >= 0) add(found, step, record);
    });
    return listed(found);
}

std::vector<PastMagnitude> magnitude_history(const Birth& birth, const Lineage& lineage, size_t steps) {
    if (steps == 0 || birth.op == "external" || birth.made_at) return {};
    if (!birth.node.empty() && !birth.has_forward && birth.in_place == nullptr) return {};
    std::map<int64_t, Largest> found;
    lineage.recent([&](const Lineage::Record& record) {
        // Zero: the write was not read, by choice of the tier.
        if (record.seq > birth.seq || record.smallest == 0 || !is_at(birth, record)) return;
        const int64_t step = lineage.step_of(record.seq);
        if (step < 0 || step > birth.step) return;
        add(found, step, record);
    });
    if (birth.node.empty() || birth.in_place != nullptr) {
        // The birth's own write may not be remembered yet; of it more is known.
        Largest own;
        for (const TensorFact& fact : birth.outputs) {
            own.bad = own.bad || fact.health.finite == 0;
            own.absmax = std::max(own.absmax, fact.health.finite > 0 ? fact.health.absmax : 0);
        }
        if (!birth.outputs.empty()) found[birth.step] = {own.absmax, own.bad && own.absmax == 0};
    }
    std::vector<PastMagnitude> history = listed(found);
    if (history.size() > steps) history.erase(history.begin(), history.end() - static_cast<std::ptrdiff_t>(steps));
    return history;
}

}  // namespace numsan
