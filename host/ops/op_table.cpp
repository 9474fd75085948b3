#include "host/ops/op_table.h"

namespace numsan {

const OpTraits& traits_of(std::string_view op) noexcept { return op_table::row_of(plain_op_name(op)); }

}  // namespace numsan
