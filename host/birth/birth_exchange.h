// What a process that makes batches leaves for the one that gets them: where the bad values of a tensor come from.
#pragma once

#include <cstdint>

#include "host/base/dtype.h"
#include "host/base/health.h"
#include "host/base/ids.h"
#include "host/finding/mechanisms.h"
#include "host/stacks/stack_source.h"
#include "host/track/birth_id.h"

namespace numsan {

struct Birth;

/// One kind of bad value in one tensor, and the birth it goes back to. No pointers: it is read in another process.
struct BirthNote {
    // The tensor, as far as both processes know.
    int64_t numel = 0;
    int64_t nan = 0;
    int64_t pos_inf = 0;
    int64_t neg_inf = 0;
    int64_t first_bad = -1;
    DType dtype = DType::Float32;
    Kind kind = kNaN;

    // Its birth.
    bool intended = false;
    bool ignored = false;
    bool inherited = false;  ///< made before the fork: the reader may know it, by `birth`
    int32_t pid = 0;         ///< of the process that left this
    int32_t line = 0;
    BirthId birth = 0;
    OpSeq seq{};
    Mechanism mechanism = Mechanism::None;
    char op[96] = {};
    char function[96] = {};
    char file[384] = {};  ///< empty when no line of the program's own was found

    bool same_tensor(const BirthNote& other) const {
        return kind == other.kind && dtype == other.dtype && numel == other.numel && nan == other.nan &&
               pos_inf == other.pos_inf && neg_inf == other.neg_inf && first_bad == other.first_bad;
    }
};

/// Both sides of the seam. Called under the verdict's lock, for bad tensors only.
class BirthExchange {
  public:
    virtual ~BirthExchange() = default;

    /// True in a process whose tensors another process may get.
    virtual bool leaves() const noexcept = 0;

    /// Leaves a note about a tensor that holds bad values of this birth. `note` describes the tensor.
    virtual void leave(BirthNote note, const Birth& birth) noexcept = 0;

    /// What another process left about the tensor that `note` describes and that arrives here. False: nothing.
    virtual bool find(BirthNote& note, StackId stack) const = 0;
};

}  // namespace numsan
