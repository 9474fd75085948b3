// numsan replay of a dump: finds a Python that has torch, and has it run the files of host/replay.
#include <unistd.h>

#include <array>
#include <cstdint>
#include <fstream>

#include "host/cli/commands.h"
#include "host/cli/process.h"
#include "host/report/json_fields.h"

namespace numsan::cli {
namespace {

constexpr int kDiedOfSignal = 128;  ///< added to the number of the signal

/// The interpreters that are asked for torch: the one that is named, else those of PATH and beside this command.
std::vector<std::string> candidates() {
    if (const std::string named = variable("NUMSAN_PYTHON"); !named.empty()) return {named};
    std::vector<std::string> found;
    if (const auto python = find_program("python3")) found.push_back(*python);
    const std::string beside = own_folder() + "/python3";
    if (access(beside.c_str(), X_OK) == 0 && (found.empty() || found.front() != beside)) found.push_back(beside);
    return found;
}

bool has_torch(const std::string& python) {
    return ask({python, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"})
               .status == 0;
}

/// What the dump says of the Python that ran the program; empty where that is not known, or not here. It is only
/// named: whoever made the dump would choose the program that runs.
std::string interpreter_of(const std::string& dump) {
    constexpr uint64_t kLargestHeader = uint64_t(64) << 20;
    std::ifstream file(dump, std::ios::binary);
    std::array<unsigned char, 8> length{};
    if (!file.read(reinterpret_cast<char*>(length.data()), length.size())) return "";
    uint64_t bytes = 0;
    for (size_t i = 0; i < length.size(); ++i) bytes |= uint64_t(length[i]) << (8 * i);
    if (bytes > kLargestHeader) return "";
    std::string header(bytes, '\0');
    if (!file.read(header.data(), static_cast<std::streamsize>(bytes))) return "";
    const auto parsed = [](const std::string& text) { return fields::Json::parse(text, nullptr, false); };
    const fields::Json document = parsed(header);
    const fields::Json& described = fields::at(fields::at(document, "__metadata__"), "numsan_dump");
    if (!described.is_string()) return "";
    const std::string path = fields::text(parsed(described.get_ref<const std::string&>()), "interpreter");
    return access(path.c_str(), X_OK) == 0 ? path : "";
}

/// Empty after a complaint.
std::string python_with_torch(const std::string& dump) {
    const std::vector<std::string> pythons = candidates();
    std::string looked_at;
    for (const std::string& python : pythons) {
        if (has_torch(python)) return python;
        looked_at += (looked_at.empty() ? "" : ", ") + python;
    }
    const std::string own = interpreter_of(dump);
    complain("a dump is replayed by a python that has torch: " +
             (looked_at.empty() ? "no python3 is on PATH" : "there is no torch in " + looked_at) + "; NUMSAN_PYTHON=" +
             (own.empty() ? "/path/to/python names another" : own + " names the one that ran the program"));
    return "";
}

}  // namespace

int replay_dump(const ReplayFlags& flags) {
    if (access(flags.path.c_str(), R_OK) != 0) {
        complain(flags.path + ": no file that can be read");
        return kUsage;
    }
    const LibrarySearch search = find_library();
    const std::string program = search.path.substr(0, search.path.rfind('/') + 1) + "replay/replay_dump.py";
    if (search.path.empty() || access(program.c_str(), R_OK) != 0) {
        complain("replay/replay_dump.py is missing beside libnumsan.so; looked at " + search.places());
        return kUsage;
    }
    const std::string python = python_with_torch(flags.path);
    if (python.empty()) return kUsage;
    set_variable("PYTHONSAFEPATH", std::nullopt);  // the program's folder has its modules
    std::vector<std::string> command = {python, "-B", program, "--format=" + flags.format};
    if (flags.trials) command.emplace_back("--try");
    if (!flags.script.empty()) command.push_back("--script=" + flags.script);
    if (!flags.output.empty()) command.push_back("--output=" + flags.output);
    command.insert(command.end(), {"--", flags.path});
    const int status = call(command);
    if (status > kDiedOfSignal) {
        complain(flags.path + ": python died of signal " + std::to_string(status - kDiedOfSignal) +
                 " while it ran the op");
    }
    return status == kOk || status == kDiffers ? status : kUsage;
}

}  // namespace numsan::cli
