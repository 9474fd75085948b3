#include "host/ops/joined_names.h"

#include <algorithm>

#include "host/ops/op_table.h"

namespace numsan {
namespace {

/// Whether `text` begins with a whole name: an underscore or the end follows.
bool begins_with(std::string_view text, std::string_view name) noexcept {
    return text.starts_with(name) && (text.size() == name.size() || text[name.size()] == '_');
}

}  // namespace

bool has_op_name(std::string_view joined, std::string_view plain) noexcept {
    while (!joined.empty()) {
        std::string_view longest = begins_with(joined, plain) ? plain : "";
        for (const op_table::Named& known : op_table::kIndex) {
            if (known.name.size() > longest.size() && begins_with(joined, known.name)) longest = known.name;
        }
        if (longest == plain) return true;
        const size_t end = longest.empty() ? joined.find('_') : longest.size();
        joined.remove_prefix(end == std::string_view::npos ? joined.size() : std::min(end + 1, joined.size()));
    }
    return false;
}

}  // namespace numsan
