// Ops that make in each step a larger tensor of what they have made in the step before.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "host/base/adapter_abi.h"
#include "host/base/ids.h"
#include "host/ops/op_traits.h"
#include "host/stacks/stack_source.h"
#include "host/track/lineage.h"

namespace numsan {

/// Of one thread. The result of an op that joins tensors grows where one of them is the op's own result of an earlier
/// step and the new one is larger than that, step after step. Where it does not grow in one step, it has come to its
/// end, as a buffer of limited size does. Steps are those that are looked at. Constant memory.
class GrowingResults {
  public:
    /// Set by hand: steps in a row from which on it grows.
    static constexpr int64_t kSteps = 4;

    /// Where an op's time is due to what grows.
    struct Seen {
        enum class What : uint8_t { Nothing, Grows, Ended } what = What::Nothing;
        StackId stack = 0;  ///< of the op whose result grows
        const OpInfo* op = nullptr;
    };

    /// An op that reads the last result of an op that grows, before the lineage knows of it.
    Seen reads(const OpEvent& event, const Lineage& lineage) const noexcept {
        for (const Place& place : places_) {
            if (place.steps < kSteps) continue;
            const bool read = std::any_of(event.inputs, event.inputs + event.input_count, [&](const TensorView& input) {
                return input.storage == place.storage && place.written == lineage.written_at(input.storage);
            });
            if (read) return {Seen::What::Grows, place.stack, place.op};
        }
        return {};
    }

    /// An op of the forward pass, before the lineage knows of it. `first`: number of the first op of this step; `step`:
    /// that were looked at before this one; `stack` is asked for where the op joins a result of its own.
    template <class Capture>
    Seen joins(const OpEvent& event, OpSeq first, int64_t step, const Lineage& lineage, Capture&& stack) noexcept {
        joined_ = nullptr;
        if (event.input_count < 2 || event.output_count != 1 || (event.outputs[0].flags & kWritten) != 0 ||
            traits_of(event).form != Form::Move)
            return {};
        const Own own = own_result(event, first, lineage);
        if (own == Own::None || (own == Own::Same && !is_known(event.op))) return {};
        const StackId at = stack();
        Place* place = find(event.op, at);
        if (own == Own::Same) {
            if (place == nullptr || place->step == step) return {};
            const bool grew = place->steps >= kSteps;
            *place = {};
            return grew ? Seen{Seen::What::Ended, at, event.op} : Seen{};
        }
        if (place == nullptr) place = &(places_[next_++ % kPlaces] = {event.op, at});
        if (place->step != step) place->steps = place->step + 1 == step ? place->steps + 1 : 1;
        place->step = step;
        joined_ = place;
        return place->steps < kSteps ? Seen{} : Seen{Seen::What::Grows, at, event.op};
    }

    /// The same op, once the lineage knows of it.
    void joined(const OpEvent& event, const Lineage& lineage) noexcept {
        if (joined_ == nullptr) return;
        joined_->storage = event.outputs[0].storage;
        joined_->written = lineage.written_at(joined_->storage);
        joined_ = nullptr;
    }

    /// The step is over: calls ended(stack) for each op that grew until then and did not in this step.
    template <class Ended>
    void end_step(int64_t step, Ended&& ended) noexcept {
        for (Place& place : places_) {
            if (place.steps < kSteps || place.step == step) continue;
            ended(place.stack);
            place = {};
        }
    }

  private:
    struct Place {
        const OpInfo* op = nullptr;
        StackId stack = 0;
        int64_t step = -1;
        int64_t steps = 0;  ///< in which it grew
        const void* storage = nullptr;
        OpSeq written = OpSeq::None;
    };
    enum class Own : uint8_t { None, Same, Smaller };

    /// Whether an operand is an earlier step's result of the same op, and then how large that was.
    static Own own_result(const OpEvent& event, OpSeq first, const Lineage& lineage) noexcept {
        Own own = Own::None;
        for (int32_t i = 0; i < event.input_count; ++i) {
            const TensorView& input = event.inputs[i];
            if ((input.flags & kNumber) != 0) continue;
            const OpSeq written = lineage.written_at(input.storage);
            Lineage::Record made;
            if (written == OpSeq::None || written >= first || !lineage.find(input.storage, made) || made.op != event.op)
                continue;
            if (made.numel < event.outputs[0].numel) return Own::Smaller;
            own = Own::Same;
        }
        return own;
    }

    bool is_known(const OpInfo* op) const noexcept {
        return std::any_of(places_.begin(), places_.end(), [&](const Place& place) { return place.op == op; });
    }
    Place* find(const OpInfo* op, StackId stack) noexcept {
        for (Place& place : places_) {
            if (place.op == op && place.stack == stack) return &place;
        }
        return nullptr;
    }

    static constexpr size_t kPlaces = 16;
    std::array<Place, kPlaces> places_{};
    size_t next_ = 0;
    Place* joined_ = nullptr;  ///< by the op between joins() and joined()
};

}  // namespace numsan
