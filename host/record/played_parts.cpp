#include "host/record/played_parts.h"

#include <cstring>

namespace numsan {

Player* the_player = nullptr;

namespace {

constexpr Range kNothingBad{0, ~uint64_t(0), false};

class PlayedNotes final : public BirthExchange {
  public:
    bool leaves() const noexcept override { return false; }
    void leave(BirthNote, const Birth&) noexcept override {}
    bool find(BirthNote& note, StackId) const override {
        const std::optional<BirthNote> found = the_player->note();
        if (found) note = *found;
        return found.has_value();
    }
};

}  // namespace

Range PlayedScanner::range(const TensorView& tensor) const noexcept {
    const TensorAnswer* answer = the_player->about(tensor);
    if (answer != nullptr && answer->range) return *answer->range;
    the_player->miss("the range of a tensor");
    return kNothingBad;
}

KindSet PlayedScanner::kinds(const TensorView& tensor) const noexcept {
    const TensorAnswer* answer = the_player->about(tensor);
    if (answer != nullptr && answer->kinds) return *answer->kinds;
    if (answer != nullptr && answer->health) return answer->health->kinds();
    the_player->miss("the kinds of bad values in a tensor");
    return 0;
}

Health PlayedScanner::health(const TensorView& tensor) const noexcept {
    const TensorAnswer* answer = the_player->about(tensor);
    if (answer != nullptr && answer->health) return *answer->health;
    the_player->miss("the counts of a tensor");
    Health nothing{};
    nothing.elements = nothing.finite = tensor.numel;
    nothing.first_bad = -1;
    return nothing;
}

void PlayedScanner::load(const void* at, void* into, size_t bytes) {
    const std::string* element = the_player->element(at);
    std::memset(into, 0, bytes);
    if (element != nullptr && element->size() >= bytes)
        std::memcpy(into, element->data(), bytes);
    else
        the_player->miss("an element of a tensor");
}

bool PlayedStacks::in_module(StackId id) const noexcept {
    const RecordedStack* stack = the_player->find(id);
    return stack != nullptr && stack->in_module;
}

std::vector<SourceFrame> PlayedStacks::resolve(StackId id) const {
    const RecordedStack* stack = the_player->find(id);
    return stack != nullptr ? stack->frames : std::vector<SourceFrame>();
}

LiveNames PlayedStacks::names(const TensorReader&) {
    const Segment* answer = the_player->outside(Head::Names);
    return answer != nullptr ? answer->names : LiveNames();
}

uint32_t PlayedAdapter::autograd_facts(const void*, bool) {
    const Segment* answer = the_player->outside(Head::AutogradFacts);
    return answer != nullptr ? answer->autograd_facts : 0;
}

AdapterApi PlayedAdapter::api(const char* hook) {
    AdapterApi made{};
    made.abi = kAdapterAbi;
    made.hook = hook;
    made.storages.watch = [](const void*) {};
    made.storages.unwatch = [](const void*) { the_player->outside(Head::Unwatch); };
    made.storages.unpin = [](const void*) { the_player->outside(Head::Unpin); };
    made.storages.pin = [](const void*, const void** data, int64_t* bytes) {
        const Segment* answer = the_player->outside(Head::Pin);
        if (answer == nullptr || !answer->pinned) return false;
        *data = answer->data;
        *bytes = answer->bytes;
        return true;
    };
    return made;
}

std::optional<ProcessRank> PlayedAdapter::rank(void (*)()) {
    const Segment* answer = the_player->outside(Head::Rank);
    return answer != nullptr ? answer->rank : std::nullopt;
}

DeviceScanner* PlayedAdapter::no_device_scanner(const OpEvent&, std::string& why) {
    why = the_player->no_device();
    return nullptr;
}

void PlayedAdapter::add_coverage(RunSummary& run) {
    const CoverageAnswer* answer = the_player->coverage();
    if (answer == nullptr) return;
    run.launches = answer->launches;
    run.kernels = answer->kernels;
    run.blind_spots.insert(run.blind_spots.end(), answer->blind_spots.begin(), answer->blind_spots.end());
}

BirthExchange* PlayedAdapter::notes(BirthExchange&) { return new PlayedNotes; }

}  // namespace numsan
