// Calls that are kept, made up, and a HoldApi that counts references to them.
#pragma once

#include <memory>
#include <vector>

#include "host/base/held_call.h"

namespace numsan {

/// One at a time: the API's functions have no object.
class MadeUpHold {
  public:
    struct Call {
        HeldView view{};
        int64_t bytes = 0;
        int references = 0;
    };

    MadeUpHold() { the_hold = this; }

    /// What the next keep() answers with: a call of this op with one tensor of so many bytes.
    Call& next(const char* op, int64_t bytes) {
        calls_.emplace_back(new Call);
        Call& made = *calls_.back();
        made.view.name = op;
        made.view.overload = "";
        made.view.schema = "made up";
        made.bytes = bytes;
        next_ = &made;
        return made;
    }

    HoldApi api() {
        HoldApi made{};
        made.keep = [] {
            if (the_hold->next_ != nullptr) ++the_hold->next_->references;
            return reinterpret_cast<HeldCall*>(the_hold->next_);
        };
        made.drop = [](HeldCall* held) { --call(held)->references; };
        made.bytes = [](const HeldCall* held) { return call(const_cast<HeldCall*>(held))->bytes; };
        made.view = [](const HeldCall* held) -> const HeldView* { return &call(const_cast<HeldCall*>(held))->view; };
        made.stop = [] { ++the_hold->stops; };
        return made;
    }

    int held() const {
        int count = 0;
        for (const auto& one : calls_) count += one->references;
        return count;
    }

    int stops = 0;

  private:
    static Call* call(HeldCall* held) { return reinterpret_cast<Call*>(held); }
    static inline MadeUpHold* the_hold = nullptr;

    std::vector<std::unique_ptr<Call>> calls_;
    Call* next_ = nullptr;
};

}  // namespace numsan
