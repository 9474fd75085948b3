#include "host/cause/magnitude_history.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "host/cause/measure.h"

namespace numsan {
namespace {

bool is_at(const Birth& birth, const Lineage::Record& record) {
    if (birth.in_place != nullptr) return record.storage == birth.in_place;
    const bool behind = !birth.node.empty();
    const std::string& op = behind ? birth.forward_op : birth.op;
    return record.op != nullptr && record.stack == (behind ? birth.forward_stack : birth.stack) &&
           op == record.op->name;
}

}  // namespace

void StepMagnitudes::add(const Lineage::Record& record, const Lineage& lineage, int64_t last) {
    if (!record.was_read()) return;
    const int64_t step = lineage.step_of(record.seq);
    if (step < 0 || step > last) return;
    const auto [at, first] = found_.emplace(step, 0);
    if (record.is_bad()) at->second = std::nullopt;
    if (at->second) *at->second = std::max(*at->second, magnitude_value(record.largest, record.dtype));
}

std::vector<PastMagnitude> StepMagnitudes::listed(size_t steps) const {
    std::vector<PastMagnitude> history;
    const size_t left_out = found_.size() - std::min(steps, found_.size());
    for (auto at = std::next(found_.begin(), static_cast<std::ptrdiff_t>(left_out)); at != found_.end(); ++at)
        history.push_back({at->first, at->second});
    return history;
}

std::vector<PastMagnitude> storage_history(const void* storage, const Lineage& lineage) {
    StepMagnitudes found;
    lineage.recent([&](const Lineage::Record& record) {
        if (record.storage == storage) found.add(record, lineage, std::numeric_limits<int64_t>::max());
    });
    return found.listed(std::numeric_limits<size_t>::max());
}

std::vector<PastMagnitude> magnitude_history(const Birth& birth, const Lineage& lineage, size_t steps) {
    if (steps == 0 || birth.op == "external" || birth.made_at) return {};
    if (!birth.node.empty() && !birth.has_forward && birth.in_place == nullptr) return {};
    StepMagnitudes found;
    lineage.recent([&](const Lineage::Record& record) {
        if (record.seq <= birth.seq && is_at(birth, record)) found.add(record, lineage, birth.step);
    });
    if (birth.node.empty() || birth.in_place != nullptr) {
        // The birth's own write may not be remembered yet; of it more is known.
        double absmax = 0;
        bool bad = false;
        for (const TensorFact& fact : birth.outputs) {
            bad = bad || fact.health.finite == 0;
            absmax = std::max(absmax, fact.health.finite > 0 ? fact.health.absmax : 0);
        }
        if (!birth.outputs.empty()) found.set(birth.step, bad && absmax == 0 ? std::nullopt : std::optional(absmax));
    }
    return found.listed(steps);
}

}  // namespace numsan
