#include "host/ops/op_table.h"

namespace numsan {

const OpTraits& traits_of(std::string_view op) noexcept {
    return is_of_torch(op) ? op_table::row_of(plain_op_name(op)) : op_table::kEmptyRow;
}

}  // namespace numsan
