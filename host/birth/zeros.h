// Zeros that are not zeros: what an overflow turned into when it was divided by, and what was too small for its type.
#pragma once

#include <optional>
#include <string>

#include "host/base/scanner.h"
#include "host/cause/birth.h"
#include "host/track/lineage.h"

namespace numsan {

/// True when `event` divides by an infinity of `overflow` and the zero it gets is wrong: the quotient of the value that
/// overflowed is one the type can hold. (1 / (1 + exp(100)) is zero for good reason; x / sqrt(sum of squares that
/// overflowed) is not.)
bool mutes(const OpEvent& event, const Birth& overflow);

/// True for ops whose result is zero wherever one of their tensors is.
bool multiplies(const OpEvent& event);

/// True for ops that hand zeros on as they are.
bool hands_zeros_on(const OpEvent& event);

/// Passes that read whole tensors are taken often at first, then ever more seldom: in two steps in a row, since some
/// compare.
inline bool looks_for_zeros(int64_t step) {
    return step < 4 || (step & (step - 1)) == 0 || ((step - 1) & (step - 2)) == 0;
}

/// True if the two below, or the verdict that follows zeros, may want to know how many there are in the op's outputs
/// and operands. For scanners that count them only when asked beforehand.
bool asks_for_zeros(const OpEvent& event);

/// Output `index` was flushed: at least half of the results that should not be zero are; of a product over many terms
/// and of what was written in place, all. Or, where nothing could cancel, even the largest has few bits left. Nothing
/// when it cannot be shown from the operands, each of which must have been measured.
std::optional<std::string> flushed_share(const OpEvent& event, int32_t index, const Scanner& scanner,
                                         const Lineage& lineage);

}  // namespace numsan
