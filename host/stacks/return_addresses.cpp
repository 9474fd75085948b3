#include "host/stacks/return_addresses.h"

#include <unwind.h>

namespace numsan {
namespace {

struct Walk {
    ReturnAddresses& into;
    int skip = 2;  ///< read_return_addresses() itself, and its caller
};

_Unwind_Reason_Code step(_Unwind_Context* context, void* data) {
    auto& walk = *static_cast<Walk*>(data);
    const uintptr_t address = _Unwind_GetIP(context);
    if (address == 0 || walk.into.count == ReturnAddresses::kMost) return _URC_END_OF_STACK;
    if (walk.skip > 0)
        --walk.skip;
    else
        walk.into.address[walk.into.count++] = address;
    return _URC_NO_REASON;
}

}  // namespace

void read_return_addresses(ReturnAddresses& into) noexcept {
    into.count = 0;
    Walk walk{into};
    _Unwind_Backtrace(step, &walk);
}

}  // namespace numsan
