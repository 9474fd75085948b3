// Tables of which a batch reads few rows, and of which the optimizer updates all.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "host/base/adapter_abi.h"
#include "host/base/ids.h"
#include "host/ops/op_traits.h"
#include "host/track/lineage.h"

namespace numsan {

/// Of one thread. The gradient of a table is dense: rows that the batch did not read have zeros, and are updated like
/// the others. Counted is a gradient that the optimizer reads as the backward pass of the look-up has written it, so
/// that nothing else gives the table a gradient. Constant memory.
class TableUpdates {
  public:
    /// Set by hand: rows for each one that is read, from which on few are.
    static constexpr int64_t kFew = 8;

    /// An op of a backward pass that took `ns`, once the lineage knows of it.
    void after(const OpEvent& event, int64_t ns, const Lineage& lineage) noexcept {
        if (event.input_count < 2 || event.output_count != 1) return;
        const TensorView& gradient = event.outputs[0];
        if (gradient.ndim != 2 || kFew * event.inputs[1].numel > gradient.sizes[0] ||
            plain_op_name(event.op->name) != "embedding_dense_backward")
            return;
        tables_[next_++ % kTables] = {.storage = gradient.storage,
                                      .written = lineage.written_at(gradient.storage),
                                      .numel = gradient.numel,
                                      .ns = ns};
    }

    /// An op of the optimizer that took `ns`, before the lineage knows of it.
    void update(const OpEvent& event, int64_t ns, const Lineage& lineage) noexcept {
        if (next_ == 0) return;
        int64_t all = 0;
        for (int32_t i = 0; i < event.input_count; ++i) all += event.inputs[i].numel;
        for (Table& table : tables_) {
            if (table.storage == nullptr) continue;
            int64_t own = 0;
            for (int32_t i = 0; i < event.input_count; ++i) {
                const TensorView& input = event.inputs[i];
                if (input.numel != table.numel) continue;
                own += input.numel;
                if (is_parameter(input)) table.see(input.storage);
                table.is_read = table.is_read ||
                                (input.storage == table.storage && lineage.written_at(input.storage) == table.written);
            }
            // A list of parameters is updated by one op.
            if (own > 0) table.updates_ns += static_cast<int64_t>(static_cast<double>(ns) * own / all);
        }
    }

    struct Updates {
        int64_t ns = 0;  ///< to make the gradients and to update the tables
        int64_t tables = 0;
    };
    /// What this step's took; the optimizer is done.
    Updates done() noexcept {
        Updates sum;
        for (Table& table : tables_) {
            if (!table.is_read) continue;  // another optimizer may have it
            sum = {sum.ns + table.ns + table.updates_ns / std::max<int64_t>(1, table.equals), sum.tables + 1};
            table = {};
        }
        return sum;
    }

    /// A step is over.
    void forget() noexcept {
        if (next_ != 0) tables_ = {};
        next_ = 0;
    }

  private:
    static constexpr size_t kTables = 16;
    struct Table {
        const void* storage = nullptr;  ///< of the gradient
        OpSeq written = OpSeq::None;
        int64_t numel = 0;
        int64_t ns = 0;          ///< to make the gradient
        int64_t updates_ns = 0;  ///< of ops on tensors that are as large
        bool is_read = false;
        /// Parameters as large as the table, of which it is one: each has its part of these ops.
        int64_t equals = 0;
        std::array<const void*, kTables> seen{};

        void see(const void* parameter) noexcept {
            const auto end = seen.begin() + equals;
            if (equals < std::ssize(seen) && std::find(seen.begin(), end, parameter) == end)
                seen[static_cast<size_t>(equals++)] = parameter;
        }
    };

    std::array<Table, kTables> tables_{};
    size_t next_ = 0;
};

}  // namespace numsan
