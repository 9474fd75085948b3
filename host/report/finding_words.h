// What texts say of a finding, part by part, from its document, which may be damaged.
#pragma once

#include <optional>
#include <string>

#include "host/report/json_fields.h"

namespace numsan {

/// A path, relative to `folder` where it lies below it. [MT]
std::string below(const std::string& path, const std::string& folder);

/// The file of a place, relative to `cwd` where it lies below it, or the cell of a notebook. [MT]
std::string shown_file(const fields::Json& place, const std::string& cwd);

/// "losses.py:31"; empty where there is no place. [MT]
std::string shown_place(const fields::Json& place, const std::string& cwd);

// Of a tensor. [MT]
std::string type_text(const fields::Json& tensor);   ///< "float32[64,64]"
std::string range_text(const fields::Json& tensor);  ///< "0 .. 22.1"; "nothing finite"
std::string state_text(const fields::Json& tensor);  ///< what is odd about its values, or "healthy"
std::string seen_text(const fields::Json& tensor);   ///< of a result: bad values and the first of them, or the range
bool any_bad(const fields::Json& tensor);            ///< something in it is not finite
bool gone(const fields::Json& tensor);               ///< the values were not read: they were overwritten first

// Of a finding. [MT]
std::string when_text(const fields::Json& finding);  ///< "step 412, backward, op 91 234 (aten::div in ...)"
/// "train > decoder/attn": the program's ranges, outermost first; empty: none was open
std::string inside_text(const fields::Json& finding);
/// "at::native::softmax_kernel(float*), launch 3, grid 4x1x1, block 128x1x1, stream 0x0, correlation 17", or, of a
/// compiled region, "cpp_fused__softmax_log_0 at /tmp/torchinductor_me/ab/cab.py:24"; empty: not known
std::string kernel_text(const fields::Json& finding);
/// "into the gradient of model.head.weight"
std::string escape_text(const fields::Json& finding, const std::string& cwd);
std::string contamination_text(const fields::Json& finding);  ///< "; parameters are not finite since step 412"
/// "to ranks 0-2 by `c10d::allreduce_` 12 of the group default_pg"; empty where it went nowhere, or came from nowhere.
std::string sent_text(const fields::Json& finding);
std::string received_operation_text(const fields::Json& finding);  ///< without the ranks
std::string received_text(const fields::Json& finding);
std::string category_text(const fields::Json& finding);  ///< the likeliest root cause and the next ones

/// Since which step something of a kind ("parameter") is not finite; none where nothing is.
std::optional<fields::JsonInteger> bad_since(const fields::Json& finding, const std::string& kind);

/// The first step after which a checkpoint is not safe to resume from; none where all are.
std::optional<fields::JsonInteger> state_bad_since(const fields::Json& finding);

}  // namespace numsan
