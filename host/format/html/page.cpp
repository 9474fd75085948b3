#include "host/format/html/page.h"

#include <string_view>

#include "host/base/version.h"
#include "host/format/html/page_files.h"
#include "host/format/xml.h"

namespace numsan::html {
namespace {

Data template_of(std::string_view file) { return Data(std::string(file)); }

}  // namespace

void put(Data& data, const std::string& key, const std::string& text) {
    data.set(key, text.empty() ? Data(false) : Data(text));
}

std::string words_html(const std::string& text) {
    std::string out;
    std::string_view left = text;
    while (!left.empty()) {
        const size_t open = left.find('`');
        const size_t close = open == std::string_view::npos ? open : left.find('`', open + 1);
        if (close == std::string_view::npos) break;
        out +=
            xml_text(left.substr(0, open)) + "<code>" + xml_text(left.substr(open + 1, close - open - 1)) + "</code>";
        left.remove_prefix(close + 1);
    }
    return out + xml_text(left);
}

std::string page(Body body, Data& data) {
    data.set("body", template_of(body == Body::Report ? file_report_html() : file_history_html()));
    data.set("finding", template_of(file_finding_html()));
    data.set("tensor", template_of(file_tensor_html()));
    data.set("style_html", template_of(file_page_css()));
    data.set("chart_html", template_of(file_chart_js()));
    data.set("script_html", template_of(file_page_js()));
    put(data, "version", NUMSAN_VERSION);
    kainjow::mustache::mustache page{std::string(file_page_html())};
    page.set_custom_escape([](const std::string& text) { return xml_text(text); });
    return page.render(data);
}

}  // namespace numsan::html
