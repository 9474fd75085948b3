// Tensors that are copied to another order of their dimensions, and back again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "host/base/adapter_abi.h"
#include "host/base/ids.h"
#include "host/ops/op_traits.h"
#include "host/perf/storage_slots.h"
#include "host/stacks/stack_source.h"
#include "host/track/lineage.h"

namespace numsan {

/// Of one thread. Both copies are needless where what lies between them works on each element, or on each row with
/// weights, as it would in any order. What a view reads has to be a copy. Constant memory.
class RoundTrips {
  public:
    struct Trip {
        StackId stack = 0;  ///< of the first copy
        const OpInfo* op = nullptr;
        int64_t ns = 0;  ///< of both copies
    };

    /// Before the lineage knows of the op, whose step began with the op `first`: calls needless(trip) where it is the
    /// first to read a copy back, of_use(trip) where it needs the order between the copies.
    template <class Needless, class OfUse>
    void reads(const OpEvent& event, OpSeq first, const Lineage& lineage, Needless&& needless,
               OfUse&& of_use) noexcept {
        carried_.reset();
        for (int32_t i = 0; i < event.input_count; ++i) {
            const TensorView& input = event.inputs[i];
            Member* member = find(input, lineage);
            if (member == nullptr) continue;
            if (shows(event, input)) {
                if (member->kind != Kind::Between && !reorders(input, event.outputs[0])) *member = {};
            } else if (member->kind == Kind::Back) {
                needless(member->way.trip);
                *member = {};
            } else if (works_row_by_row(event, i, member->row, first, lineage)) {
                carried_ = member->way;
            } else if (!is_indifferent(event) && !(reordered(event) && leads_back(input, member->way))) {
                of_use(member->way.trip);
            }
        }
    }

    /// Once the lineage knows of the op. `stack` is asked for where a copy has another order.
    template <class Capture>
    void remember(const OpEvent& event, int64_t ns, const Lineage& lineage, Capture&& stack) noexcept {
        if (carried_) {
            keep(event.outputs[0], *carried_, Kind::Between, lineage);
        } else if (std::optional<Way> there = reordered(event)) {
            const Member* from = find(event.inputs[0], lineage);
            if (from != nullptr && leads_back(event.inputs[0], from->way)) {
                there->trip = from->way.trip;
                there->trip.ns += ns;
                return keep(event.outputs[0], *there, Kind::Back, lineage);
            }
            there->trip = {stack(), event.op, ns};
            keep(event.outputs[0], *there, Kind::There, lineage);
        }
    }

  private:
    static constexpr int16_t kDims = 5;

    /// How a copy lies: its sizes, and which place each dimension has in the order before.
    struct Way {
        Trip trip;
        int16_t ndim = 0;
        std::array<int64_t, kDims> sizes{};
        std::array<int16_t, kDims> place{};
    };
    enum class Kind : uint8_t { There, Between, Back };
    struct Member {
        const void* storage = nullptr;
        const void* data = nullptr;  ///< where the storage began
        OpSeq written = OpSeq::None;
        int64_t row = 0;  ///< elements of the last dimension
        Kind kind = Kind::There;
        Way way;
    };

    Member* find(const TensorView& tensor, const Lineage& lineage) noexcept {
        Member& member = members_[tensor.storage];
        // Numbers, and memory that comes from elsewhere, have storages at addresses of tensors that are gone.
        const bool holds = (tensor.flags & kNumber) == 0 && tensor.storage != nullptr &&
                           member.storage == tensor.storage && member.data == tensor.storage_data &&
                           member.written == lineage.written_at(tensor.storage);
        return holds ? &member : nullptr;
    }
    void keep(const TensorView& tensor, const Way& way, Kind kind, const Lineage& lineage) noexcept {
        members_[tensor.storage] = {tensor.storage,
                                    tensor.storage_data,
                                    lineage.written_at(tensor.storage),
                                    tensor.ndim > 0 ? tensor.sizes[tensor.ndim - 1] : 1,
                                    kind,
                                    way};
    }

    static bool shows(const OpEvent& event, const TensorView& input) noexcept {
        return event.output_count > 0 && event.outputs[0].storage == input.storage && is_view(event, event.outputs[0]);
    }

    /// A view of the same dimensions, in any order: that of a tensor that was not copied is as good.
    static bool reorders(const TensorView& tensor, const TensorView& view) noexcept {
        if (tensor.ndim != view.ndim || tensor.numel != view.numel || tensor.data != view.data) return false;
        int64_t taken = 0;
        for (int16_t i = 0; i < tensor.ndim; ++i) {
            int16_t at = 0;
            while (at < view.ndim && ((taken >> at & 1) != 0 || view.sizes[at] != tensor.sizes[i] ||
                                      view.strides[at] != tensor.strides[i]))
                ++at;
            if (at == view.ndim) return false;
            taken |= int64_t(1) << at;
        }
        return true;
    }
    /// It takes the sizes alone, or sums all elements up.
    static bool is_indifferent(const OpEvent& event) noexcept {
        const OpTraits& traits = traits_of(event);
        const bool sums = traits.is({Form::Sum, Form::Mean, Form::Norm, Form::Deviation}) || traits.has(kLoss);
        return traits.is({Form::Finite, Form::Fill}) ||
               (sums && event.output_count == 1 && event.outputs[0].numel == 1);
    }

    static bool works_row_by_row(const OpEvent& event, int32_t at, int64_t row, OpSeq first,
                                 const Lineage& lineage) noexcept {
        if (event.output_count == 0 || is_over_lists(event)) return false;
        const OpTraits& traits = traits_of(event);
        const bool with_weights = is_matrix_product(traits) || is_norm_of_rows(event);
        if (!with_weights) return is_pointwise(traits) && same_sizes(event.inputs[at], event.outputs[0]);
        const TensorView& rows = event.inputs[at];
        if (rows.ndim == 0 || rows.sizes[rows.ndim - 1] != row) return false;  // a view of other rows
        if (is_matrix_product(traits) ? at != event.input_count - 2 : at != 0) return false;
        for (int32_t i = 0; i < event.input_count; ++i) {
            const bool older =
                (event.inputs[i].flags & kNumber) != 0 || lineage.written_at(event.inputs[i].storage) < first;
            if (i != at && !older) return false;
        }
        return true;
    }
    static bool is_norm_of_rows(const OpEvent& event) noexcept {
        const std::string_view name = plain_op_name(event.op->name);
        return name == "native_layer_norm" || name == "_fused_rms_norm";
    }
    static bool is_pointwise(const OpTraits& traits) noexcept {
        if (traits.form == Form::Unknown) return traits.has(kSaturates) && !traits.has(kLayer);  // GELU and its like
        return traits.is({Form::Negate,     Form::Magnitude,   Form::Rectify,  Form::Clamp,        Form::ClampBelow,
                          Form::Choose,     Form::Add,         Form::Subtract, Form::SubtractFrom, Form::Interpolate,
                          Form::Multiply,   Form::Square,      Form::Divide,   Form::AddProduct,   Form::AddQuotient,
                          Form::Reciprocal, Form::InverseRoot, Form::Root,     Form::Log,          Form::Log1p,
                          Form::Exp,        Form::Exp2,        Form::Expm1,    Form::Bounded,      Form::Sigmoid});
    }
    static bool same_sizes(const TensorView& a, const TensorView& b) noexcept {
        if (a.ndim != b.ndim) return false;
        for (int16_t i = 0; i < a.ndim; ++i) {
            if (a.sizes[i] != b.sizes[i]) return false;
        }
        return true;
    }

    /// The op copies a tensor whose dimensions stand in another order than its elements; how the copy lies.
    static std::optional<Way> reordered(const OpEvent& event) noexcept {
        if (event.input_count != 1 || event.output_count != 1) return {};
        const TensorView& from = event.inputs[0];
        const TensorView& to = event.outputs[0];
        if (from.ndim < 2 || from.ndim > kDims || from.storage == to.storage || (to.flags & kWritten) != 0 ||
            (from.flags & to.flags & kScannable) == 0 || !same_sizes(from, to) || !lies_in_order(to) ||
            plain_op_name(event.op->name) != "clone")
            return {};
        Way way;
        way.ndim = from.ndim;
        int64_t elements = 1;  // of the dimensions behind one
        bool other = false;
        for (int16_t place = static_cast<int16_t>(from.ndim - 1); place >= 0; --place) {
            int16_t next = -1;
            for (int16_t i = 0; i < from.ndim; ++i) {
                if (from.strides[i] == elements && from.sizes[i] > 1) next = i;
            }
            if (next < 0) return {};
            way.sizes[static_cast<size_t>(next)] = from.sizes[next];
            way.place[static_cast<size_t>(next)] = place;
            other = other || next != place;
            elements *= from.sizes[next];
        }
        return other ? std::optional(way) : std::nullopt;
    }
    static bool lies_in_order(const TensorView& tensor) noexcept {
        int64_t elements = 1;
        for (int16_t i = static_cast<int16_t>(tensor.ndim - 1); i >= 0; --i) {
            if (tensor.strides[i] != elements) return false;
            elements *= tensor.sizes[i];
        }
        return true;
    }
    /// The tensor is one that lies as `way`, its dimensions in the order before.
    static bool leads_back(const TensorView& tensor, const Way& way) noexcept {
        if (tensor.ndim != way.ndim) return false;
        int64_t elements = 1;
        for (int16_t i = static_cast<int16_t>(way.ndim - 1); i >= 0; --i) {
            const int16_t before = way.place[static_cast<size_t>(i)];
            if (tensor.strides[before] != elements || tensor.sizes[before] != way.sizes[static_cast<size_t>(i)])
                return false;
            elements *= tensor.sizes[before];
        }
        return true;
    }

    StorageSlots<Member, 64> members_;
    std::optional<Way> carried_;  ///< by the op between reads() and remember()
};

}  // namespace numsan
