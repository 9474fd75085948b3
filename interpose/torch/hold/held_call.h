// One call of an operator with what it was called with, for the time it runs, and as copies for longer where the core
// asks for them. Only where CoreApi::held_bytes asks for it.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/base/held_call.h"
#include "interpose/torch/describe/op_registry.h"

namespace numsan {

/// Counted: the hook has a reference while the op runs, the core one for each call of HoldApi::keep. Everything but the
/// count belongs to the thread of the op until it has been kept, and does not change after that.
struct HeldCall {
  public:
    /// Before the op runs: takes references to its arguments, and copies those whose memory it writes. Null where
    /// nothing is held any more, or there is no memory. At most `most_bytes` are copied.
    static HeldCall* begin(const Operator& op, c10::ArrayRef<c10::IValue> arguments, int64_t most_bytes) noexcept;

    /// Of an op of the past: copies of what is shown. Null: there is no memory.
    static HeldCall* of_past(const Operator& op, std::vector<c10::IValue> arguments, std::vector<c10::IValue> results,
                             int64_t most_bytes) noexcept;

    static bool stopped() noexcept;

    /// Before it is kept.
    c10::ArrayRef<c10::IValue> arguments() const { return arguments_; }

    /// After it ran: its results, which must live until the call is kept or dropped.
    void returned(c10::ArrayRef<c10::IValue> results) { results_ = results; }

    /// Copies what is not copied yet, and lets go of everything that is the program's. False: there is no memory.
    bool own() noexcept;

    void add_reference() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
    void drop() noexcept {
        if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }

    int64_t bytes() const noexcept { return bytes_; }
    const HeldView& view() const noexcept { return view_; }
    /// The copy that HeldValue::tensor names; undefined where its values are all zero.
    const at::Tensor& tensor(int32_t index) const { return tensors_[static_cast<size_t>(index)].copy; }

    /// From now on begin() returns null.
    static void stop() noexcept;

  private:
    struct Tensor {
        const c10::TensorImpl* impl;  ///< identity of the program's, while it is there
        at::Tensor copy;
        const char* format;
        std::vector<int64_t> stored;  ///< sizes in the file
        int64_t bytes;
    };
    /// Copied before the op ran.
    struct Before {
        const c10::TensorImpl* impl;
        at::Tensor copy;  ///< undefined: not copied
        bool overwritten;
        bool unread;  ///< its device could not be read
    };

    HeldCall(const Operator& op, int64_t most_bytes) : op_(op), most_bytes_(most_bytes) {}
    ~HeldCall() = default;

    void copy_written(c10::ArrayRef<c10::IValue> arguments);
    void describe(std::vector<HeldValue>& into, const c10::IValue& value, const char* name, const c10::TypePtr& type,
                  bool result);
    void describe(HeldValue& into, const at::Tensor& tensor, bool result);
    int32_t keep(const at::Tensor& tensor, at::Tensor copy);
    bool has_room_for(int64_t bytes) const { return bytes <= most_bytes_ - bytes_; }
    const char* text(std::string value) { return texts_.emplace_back(std::move(value)).c_str(); }
    const int64_t* numbers(c10::IntArrayRef values) {
        return numbers_.emplace_back(values.begin(), values.end()).data();
    }

    const Operator& op_;
    const int64_t most_bytes_;
    int64_t bytes_ = 0;  ///< copied
    std::atomic<int> references_{1};
    std::vector<c10::IValue> arguments_;
    c10::ArrayRef<c10::IValue> results_;
    std::vector<Before> before_;
    at::Tensor generator_;
    bool past_ = false;
    enum class State : uint8_t { Held, Kept, Failed } state_ = State::Held;

    std::vector<HeldValue> argument_values_, result_values_;
    std::vector<Tensor> tensors_;
    size_t first_result_ = 0;  ///< of tensors_
    std::vector<HeldTensor> shown_;
    HeldTensor shown_generator_{};
    std::list<std::string> texts_;               ///< whose places stay; nothing is allocated for an op that is not kept
    std::vector<std::vector<int64_t>> numbers_;  ///< whose elements stay
    HeldView view_{};
};

/// While it lives, HoldApi::keep answers with this call on this thread.
class CurrentHold {
  public:
    explicit CurrentHold(HeldCall* call) noexcept;
    ~CurrentHold();
    static HeldCall* get() noexcept;  ///< null: nothing is held
    CurrentHold(const CurrentHold&) = delete;
    CurrentHold& operator=(const CurrentHold&) = delete;

  private:
    HeldCall* before_;
};

/// Stands in place of a tensor of the past whose values are gone: it has a shape and no memory.
bool is_gone(const at::Tensor& tensor);

}  // namespace numsan
