// Pages of HTML: templates and what is filled into them. All of it is escaped but what a template takes in three
// braces, whose names end in _html.
#pragma once

#include <kainjow/mustache.hpp>
#include <string>

namespace numsan::html {

using Data = kainjow::mustache::data;
using List = kainjow::mustache::list;

/// Which template is the body of a page.
enum class Body { Report, History };

/// Empty text is not there: {{#key}} leaves out what it stands around.
void put(Data& data, const std::string& key, const std::string& text);

/// Names in backquotes as code; what is between them escaped.
std::string words_html(const std::string& text);

/// The whole page, which needs no other file. `data` has its title, and what the templates of its body ask for.
std::string page(Body body, Data& data);

}  // namespace numsan::html
