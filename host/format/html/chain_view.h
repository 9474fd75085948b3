// The way of a value from where it was born to where it got, as a list of stations.
#pragma once

#include "host/format/html/page.h"
#include "host/report/json_fields.h"

namespace numsan::html {

/// Stations in the order of the program: what was computed before, the birth, what handed it on, the escape, and what
/// is not finite since. Only what the report has. [MT]
List chain_view(const fields::Json& finding, const std::string& cwd);

}  // namespace numsan::html
