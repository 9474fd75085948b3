#include "interpose/runtime/process_options.h"

#include <stdlib.h>

#include <string>
#include <vector>

#include "host/log/log.h"

namespace numsan {
namespace {

Options read_options() {
    Options options;
    std::vector<std::string> complaints;
    const char* text = secure_getenv("NUMSAN_OPTIONS");
    parse(text != nullptr ? text : "", options, complaints);
    for (const std::string& complaint : complaints) say(complaint.c_str());
    return options;
}

}  // namespace

void say(const char* line) { stderr_log().line(Level::Always, line); }

const Options& process_options() {
    static const Options* options = new Options(read_options());
    return *options;
}

}  // namespace numsan
