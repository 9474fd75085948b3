// The allow-list: rules for findings that the program's people know and do not want to see.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/finding/finding.h"
#include "host/finding/mechanisms.h"

namespace numsan {

/// One rule a line: fields like `op:aten::log`, `file:losses.py:31`, `module:model.layers.*.attn`, `code:NS104`,
/// `category:N8`, all of which must match; `#` starts a comment. Owns its strings; const members are [MT].
class AllowList {
  public:
    /// `name` is what complaints call the text. A bad line makes one complaint and no rule.
    static AllowList parse(std::string_view text, const std::string& name, std::vector<std::string>& complaints);

    /// The rules of a file. No file, or none that can be read: one complaint and no rules. An empty path: no rules.
    static AllowList read(const std::string& path, std::vector<std::string>& complaints);

    /// The text of the first rule that matches, null when none does. `cwd` is where relative files of the finding are.
    /// The text lives as long as the list.
    const std::string* match(const Finding& finding, const std::string& cwd) const;

    /// The text of each rule, in the order of the file, blanks and comments gone.
    std::vector<std::string> rules() const;

    /// True when a rule asks for a module: only then is a finding without its module's name not enough.
    bool names_modules() const;

  private:
    enum class Field { Op, File, Module, Code, Category };
    struct Condition {
        Field field;
        std::string pattern;
        Mechanism mechanism = Mechanism::None;  ///< of a code
        int line = 0;                           ///< of a file; 0 is any
    };
    struct Rule {
        std::string text;
        std::vector<Condition> conditions;
    };

    static std::string read_condition(std::string_view word, Condition& out);
    static bool holds(const Condition& condition, const Finding& finding, const std::string& cwd);

    std::vector<Rule> rules_;
};

/// True when `pattern` describes all of `text`; `*` stands for any characters, also none, also '/' and '.'. [MT]
bool glob_matches(std::string_view pattern, std::string_view text);

}  // namespace numsan
