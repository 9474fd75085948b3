// Names of operators that are joined to one, as Inductor names its kernels: "cpp_fused__log_softmax_add_0".
#pragma once

#include <string_view>

namespace numsan {

/// Whether the operator with this plain name is among those that `joined` has, between underscores. Names of known
/// operators are taken as long as they go: `log` is not in the one above.
bool has_op_name(std::string_view joined, std::string_view plain) noexcept;

}  // namespace numsan
