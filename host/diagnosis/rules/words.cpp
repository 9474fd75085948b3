#include "host/diagnosis/rules/words.h"

#include <nlohmann/json.hpp>

#include "host/log/format.h"
#include "host/report/finding_words.h"
#include "host/report/json_fields.h"
#include "host/report/json_writer.h"

namespace numsan {

std::string parameter_words(const std::string& name, const std::vector<int64_t>& shape) {
    if (!name.empty()) return "`" + fields::clean(name) + "`";
    std::string sizes;
    for (const int64_t size : shape) sizes += (sizes.empty() ? "" : " x ") + digits(size);
    return "a parameter of " + (sizes.empty() ? "one element" : sizes);
}

std::string place_lines(const std::optional<Place>& place, const TextStyle& style) {
    if (!place) return "";
    std::string out = inked("  --> ", Ink::Frame, style) + shown_place(place_document(place), style.cwd) + " in " +
                      fields::clean(place->function) + "\n";
    if (place->code) out += "   |  " + fields::clean(*place->code) + "\n";
    return out;
}

}  // namespace numsan
