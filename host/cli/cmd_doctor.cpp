// numsan doctor: what would be seen on this machine, asked of files and of the Python that would run; loads nothing itself.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "host/cli/commands.h"
#include "host/cli/process.h"
#include "host/core/version.h"

namespace numsan::cli {
namespace {

constexpr int kOldestPython = 10;  // minor versions whose frames can be read
constexpr int kNewestPython = 14;

// Imports nothing of torch: only its place and its version are looked up.
constexpr char kQuestion[] = R"(
import sys, os, importlib.util
print("%d.%d.%d" % sys.version_info[:3])
spec = importlib.util.find_spec("torch")
folder = os.path.dirname(spec.origin) if spec and spec.origin else ""
version = ""
if folder:
    try:
        import importlib.metadata
        version = importlib.metadata.version("torch")
    except Exception:
        version = "unknown"
print(version)
print(folder)
)";

/// Lines as they are found out, and the worst of their outcomes.
class Diagnosis {
  public:
    void good(const std::string& text) { print("ok     ", text, kOk); }
    void limited(const std::string& text) { print("limited", text, kLimited); }
    void broken(const std::string& text) { print("broken ", text, kUsage); }

    int finish() const {
        const char* words[] = {"ready", "limited: it works, but not everything is seen", "cannot work here"};
        std::printf("numsan: %s\n", words[worst_]);
        return worst_;
    }

  private:
    void print(const char* mark, const std::string& text, int outcome) {
        std::printf("%s  %s\n", mark, text.c_str());
        if (outcome > worst_) worst_ = outcome;
    }

    int worst_ = kOk;
};

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// The Python that a command would run: itself, or the one in its script's first line.
std::string python_of(const std::vector<std::string>& command) {
    const char* chosen = std::getenv("NUMSAN_PYTHON");
    if (command.empty()) return chosen && *chosen ? chosen : "python3";
    if (base_name(command.front()).starts_with("python")) return command.front();
    const auto program = find_program(command.front());
    if (!program) return "";
    std::ifstream script(*program);
    std::string line;
    if (!std::getline(script, line) || !line.starts_with("#!") || line.find("python") == std::string::npos) return "";
    std::istringstream words(line.substr(2));
    std::string word;
    while (words >> word) {
        if (base_name(word).starts_with("python")) return word;
    }
    return "";
}

void check_library(Diagnosis& diagnosis) {
    const LibrarySearch search = find_library();
    if (search.path.empty()) {
        diagnosis.broken("library: libnumsan.so is missing; looked at " + search.looked_at[0] + ", " + search.looked_at[1]);
        return;
    }
    const std::string core = search.path.substr(0, search.path.rfind('/')) + "/libnumsan_core.so";
    if (!exists(core)) {
        diagnosis.broken("library: " + core + " is missing");
        return;
    }
    diagnosis.good("library: " + search.path + " " NUMSAN_VERSION);
}

void check_torch(Diagnosis& diagnosis, const std::string& version, const std::string& folder) {
    if (folder.empty()) {
        diagnosis.broken("torch: this python has none, so no operation would be seen");
        return;
    }
    diagnosis.good("torch: " + version + " in " + folder);
    if (exists(folder + "/include/ATen/ATen.h")) {
        diagnosis.good("operations: torch's headers are there, the adapter can be built on first use");
    } else {
        diagnosis.broken("operations: " + folder + "/include/ATen/ATen.h is missing, the adapter cannot be built");
    }
}

void check_python_version(Diagnosis& diagnosis, const std::string& python, const std::string& version) {
    int major = 0;
    int minor = 0;
    const bool read = std::sscanf(version.c_str(), "%d.%d", &major, &minor) == 2;
    if (read && major == 3 && minor >= kOldestPython && minor <= kNewestPython) {
        diagnosis.good("python: " + version + " as " + python);
    } else {
        diagnosis.limited("python: " + version + " as " + python + ": source lines are known for 3." +
                          std::to_string(kOldestPython) + " to 3." + std::to_string(kNewestPython) + " only");
    }
}

void check_python(Diagnosis& diagnosis, const std::vector<std::string>& command) {
    const std::string name = python_of(command);
    if (name.empty()) {
        if (find_program(command.front())) {
            diagnosis.limited("program: " + command.front() + " is no python program; what it loads is not known before it runs");
        } else {
            diagnosis.broken("program: " + command.front() + " is not there or cannot be run");
        }
        return;
    }
    const auto python = find_program(name);
    if (!python) {
        diagnosis.broken("python: " + name + " is not there or cannot be run");
        return;
    }
    const Answer answer = ask({*python, "-c", kQuestion});
    std::istringstream lines(answer.output);
    std::string version;
    std::string torch;
    std::string folder;
    std::getline(lines, version);
    std::getline(lines, torch);
    std::getline(lines, folder);
    if (answer.status != 0 || version.empty()) {
        diagnosis.broken("python: " + *python + " did not answer (exit status " + std::to_string(answer.status) + ")");
        return;
    }
    check_python_version(diagnosis, *python, version);
    check_torch(diagnosis, torch, folder);
}

void check_compiler(Diagnosis& diagnosis) {
    const char* chosen = std::getenv("CXX");
    std::vector<std::string> names{"c++", "g++", "clang++"};
    if (chosen && *chosen) {
        const std::string command = chosen;
        names.insert(names.begin(), command.substr(0, command.find(' ')));
    }
    for (const std::string& name : names) {
        if (const auto path = find_program(name)) {
            diagnosis.good("compiler: " + *path);
            return;
        }
    }
    diagnosis.limited("compiler: none of c++, g++, clang++ is there: only a torch whose adapter is in the cache is seen");
}

/// The driver's library as a file, found but not loaded.
std::string driver_library() {
    std::string folders = "/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu:/usr/lib64:/usr/lib:/usr/local/cuda/compat:"
                          "/usr/lib/wsl/lib";
    if (const char* path = std::getenv("LD_LIBRARY_PATH"); path && *path) folders = std::string(path) + ":" + folders;
    std::istringstream list(folders);
    std::string folder;
    while (std::getline(list, folder, ':')) {
        if (!folder.empty() && exists(folder + "/libcuda.so.1")) return folder + "/libcuda.so.1";
    }
    return "";
}

void check_cuda(Diagnosis& diagnosis) {
    const std::string driver = driver_library();
    if (driver.empty()) {
        diagnosis.good("cuda: no libcuda.so.1 here; CPU tensors are scanned");
    } else {
        diagnosis.limited("cuda: " + driver + " is there; this version scans CPU tensors only");
    }
}

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

/// Whether `folder`, or the nearest folder above it that exists, can be written.
bool writable(std::string folder) {
    while (!exists(folder)) {
        const size_t slash = folder.rfind('/');
        if (slash == std::string::npos || slash == 0) return access("/", W_OK) == 0;
        folder.resize(slash);
    }
    struct stat status {};
    return stat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && access(folder.c_str(), W_OK | X_OK) == 0;
}

void check_cache(Diagnosis& diagnosis) {
    std::vector<std::string> candidates;
    if (!variable("NUMSAN_CACHE").empty()) candidates.push_back(variable("NUMSAN_CACHE"));
    if (variable("XDG_CACHE_HOME").starts_with("/")) candidates.push_back(variable("XDG_CACHE_HOME") + "/numsan");
    if (variable("HOME").starts_with("/")) candidates.push_back(variable("HOME") + "/.cache/numsan");
    candidates.push_back("/tmp/numsan-" + std::to_string(geteuid()));
    for (const std::string& folder : candidates) {
        if (writable(folder)) {
            diagnosis.good("cache: " + folder);
            return;
        }
        diagnosis.limited("cache: " + folder + " cannot be written");
    }
}

}  // namespace

int doctor(const std::vector<std::string>& command) {
    Diagnosis diagnosis;
    check_library(diagnosis);
    check_python(diagnosis, command);
    check_compiler(diagnosis);
    check_cache(diagnosis);
    check_cuda(diagnosis);
    return diagnosis.finish();
}

}  // namespace numsan::cli
