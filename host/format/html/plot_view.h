// Tables of figures that the page plots: how magnitudes changed over steps, how an operand's values are spread.
#pragma once

#include "host/format/html/page.h"
#include "host/report/json_fields.h"

namespace numsan::html {

/// The magnitudes of each step, of the finding's own place and of the operators before it, with the limits of the type;
/// false where the report has none. [MT]
Data history_view(const fields::Json& finding);

/// How many values lie between one power of two and the next, for each tensor of which the report has it. [MT]
List histogram_views(const fields::Json& finding);

}  // namespace numsan::html
