// What is new between the findings of two sets of reports.
#pragma once

#include <string>
#include <vector>

#include "host/format/known_findings.h"

namespace numsan {

enum class Change { Appeared, MoreSevere, Moved, LessSevere, Vanished, Unchanged };

/// One finding, or one that is on both sides. A side that has none is null; both live as long as their KnownFindings.
struct ChangedFinding {
    Change change;
    const KnownFinding* before;
    const KnownFinding* now;
};

/// Pairs findings by fingerprint. Of the rest two are the same finding where operator, phase, mechanism and the text of
/// the line are, and of file, function and module at most one differs. In the order of Change, then of the findings.
/// [MT]
std::vector<ChangedFinding> finding_changes(const KnownFindings& base, const KnownFindings& now);

/// The same for findings that need not be of one set of reports.
std::vector<ChangedFinding> finding_changes(std::vector<const KnownFinding*> before,
                                            const std::vector<const KnownFinding*>& now);

/// The same file and line: as absolute paths, or below the folders in which the runs started. [MT]
bool same_place(const KnownFinding& before, const KnownFinding& now);

/// The function of its line; empty where there is none.
std::string function_of(const KnownFinding& finding);

/// "losses.py:31", or "no line".
std::string place_text(const KnownFinding& finding);

/// True where a nightly run should fail: a finding appeared or became more severe.
bool any_news(const std::vector<ChangedFinding>& changes);

/// "appeared", "more severe", ...
const char* to_string(Change change);

}  // namespace numsan
