#include "host/diagnosis/early_warning.h"

#include <nlohmann/json.hpp>

#include "host/diagnosis/place_document.h"
#include "host/diagnosis/rules/words.h"
#include "host/log/format.h"
#include "host/report/finding_words.h"
#include "host/report/json_fields.h"
#include "host/report/json_writer.h"

namespace numsan {
namespace {

using fields::Json;

/// "`model.head.weight`", "the gradient of a parameter of 4 x 4", "what `aten::mse_loss` writes".
std::string subject(const EarlyWarning& one) {
    if (one.of == "output") return "what `" + fields::clean(one.op) + "` writes";
    const std::string parameter = parameter_words(one.name, one.shape);
    return one.of == "gradient" ? "the gradient of " + parameter : parameter;
}

std::string title(const EarlyWarning& one) {
    const std::string span = one.least == one.most ? "" : " (" + grouped(one.least) + " to " + grouped(one.most) + ")";
    return "at this rate " + fields::clean(one.dtype) + " overflows in about " + counted(one.steps, "step", "steps") +
           span;
}

}  // namespace

Json early_warning_document(const EarlyWarning& one) {
    return {{"of", one.of},
            {"name", fields::text_or_null(one.name)},
            {"shape", one.shape},
            {"op", fields::text_or_null(one.op)},
            {"location", place_document(one.location)},
            {"dtype", one.dtype},
            {"step", one.step},
            {"size", fields::finite_or_null(one.size)},
            {"limit", fields::finite_or_null(one.limit)},
            {"factor", fields::finite_or_null(one.factor)},
            {"grown", one.grown},
            {"steps", one.steps},
            {"steps_least", one.least},
            {"steps_most", one.most}};
}

EarlyWarning read_early_warning(const Json& document) {
    EarlyWarning made;
    made.of = fields::text(document, "of");
    made.name = fields::text(document, "name");
    for (const Json& size : fields::list(document, "shape"))
        made.shape.push_back(size.is_number_integer() ? size.get<int64_t>() : 0);
    made.op = fields::text(document, "op");
    made.location = read_place(document, "location");
    made.dtype = fields::text(document, "dtype");
    made.step = whole_number(document, "step");
    made.size = fields::real(document, "size").value_or(0);
    made.limit = fields::real(document, "limit").value_or(0);
    made.factor = fields::real(document, "factor").value_or(0);
    made.grown = whole_number(document, "grown");
    made.steps = whole_number(document, "steps");
    made.least = whole_number(document, "steps_least");
    made.most = whole_number(document, "steps_most");
    return made;
}

std::string render_early_warnings(const std::vector<EarlyWarning>& warnings, const TextStyle& style) {
    if (warnings.empty()) return "";
    const EarlyWarning& one = warnings.front();
    std::string out = inked("early warning", Ink::Warning, style) + ": " + inked(title(one), Ink::Strong, style) + "\n";
    out += place_lines(one.location, style);
    const auto add = [&](const char* label, const std::string& text) { out += row("  ", label, text, style); };
    add("because:", subject(one) + " is as large as " + value_text(one.size) + " in step " + digits(one.step) +
                        ": it has grown for " + counted(one.grown, "step", "steps") + " and is " +
                        number(one.factor, 3) + " times as large with each");
    add("because:", "the largest number of " + fields::clean(one.dtype) + " is " + value_text(one.limit));
    if (warnings.size() > 1) {
        add("because:",
            counted(static_cast<int64_t>(warnings.size()) - 1, "further value grows", "further values grow") +
                " like that");
    }
    add("help:",
        "take a smaller learning rate where the optimizer is built, or clip gradients: "
        "`torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)`");
    if (one.dtype == "float16") add("help:", "compute this line in float32 or bfloat16, which hold larger numbers");
    if (one.step > one.grown)
        add("help:", "keep the checkpoint that was written before step " + digits(one.step - one.grown));
    return out;
}

}  // namespace numsan
