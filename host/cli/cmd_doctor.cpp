// numsan doctor: what would be seen on this machine, asked of files and of the Python that would run, which makes a NaN
// under numsan for it; loads nothing itself.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>

#include "host/base/cupti_places.h"
#include "host/base/version.h"
#include "host/cli/commands.h"
#include "host/cli/process.h"
#include "host/options/cache_folder.h"

namespace numsan::cli {
namespace {

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

// Runs under numsan with the path of the core library: whether a NaN is found at its line, then how frames are read and
// where the adapter came from.
constexpr char kProbe[] = R"(
import ctypes, os, sys
os.dup2(1, 2)
import torch
def probe():
    torch.log(-torch.ones(1)).item()
probe()
def stacks():
    answer = ctypes.CDLL(sys.argv[1]).numsan_python_stacks
    answer.restype = ctypes.c_char_p
    yield answer().decode()
print("stacks", *stacks())
origin = ctypes.CDLL(sys.argv[1]).numsan_adapter_origin
origin.restype = ctypes.c_char_p
print("adapter", origin().decode())
)";
constexpr char kProbeFound[] = "--> <string>:6 in probe";

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
    if (command.empty()) return variable("NUMSAN_PYTHON").empty() ? "python3" : variable("NUMSAN_PYTHON");
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

/// Path of the core library, "" where something is missing.
std::string check_library(Diagnosis& diagnosis) {
    const LibrarySearch search = find_library();
    if (search.path.empty()) {
        diagnosis.broken("library: libnumsan.so is missing; looked at " + search.places());
        return "";
    }
    std::string core = search.path.substr(0, search.path.rfind('/')) + "/libnumsan_core.so";
    if (!exists(core)) {
        diagnosis.broken("library: " + core + " is missing");
        return "";
    }
    diagnosis.good("library: " + search.path + " " NUMSAN_VERSION);
    return core;
}

/// The rest of the first line of `text` that starts with `start`.
std::optional<std::string> line_after(const std::string& text, const std::string& start) {
    std::istringstream lines(text);
    std::string line;
    while (std::getline(lines, line)) {
        if (line.starts_with(start)) return line.substr(start.size());
    }
    return std::nullopt;
}

/// The last line that has something on it.
std::string last_line(const std::string& text) {
    const size_t end = text.find_last_not_of('\n');
    const size_t before = text.rfind('\n', end);
    return end == text.npos ? "no output" : text.substr(before == text.npos ? 0 : before + 1, end - before);
}

void check_lines(Diagnosis& diagnosis, const std::string& output) {
    const std::string answer = line_after(output, "stacks ").value_or("none|python did not say");
    const size_t bar = answer.find('|');
    const std::string mode = answer.substr(0, bar);
    const std::string why = bar == answer.npos ? "" : answer.substr(bar + 1);
    if (mode == "raw") {
        diagnosis.good("lines: python frames are read where they lie, without python's lock (raw walk)");
    } else if (mode == "api") {
        diagnosis.good("lines: python frames are asked of python under its lock, which is slower (C-API walk): " + why);
    } else {
        diagnosis.limited("lines: python frames cannot be read: " + why);
    }
}

/// Where the adapter came from; whether it was prebuilt, so that no compiler is needed for this torch.
bool check_adapter(Diagnosis& diagnosis, const std::string& output) {
    const std::string answer = line_after(output, "adapter ").value_or("");
    const size_t bar = answer.find('|');
    if (bar == answer.npos) return false;
    const std::string origin = answer.substr(0, bar);
    diagnosis.good("adapter: " + origin + ", " + answer.substr(bar + 1));
    return origin == "prebuilt";
}

/// Lets `python` make a NaN under numsan, which compiles the adapter where none is there. True: one was prebuilt.
bool check_operations(Diagnosis& diagnosis, const std::string& python, const std::string& core) {
    set_variable("NUMSAN_OPTIONS", std::nullopt);  // what the program under test asks for is not what is tried
    std::fflush(stdout);
    complain("trying torch; where it has no adapter yet one is compiled, about a minute");
    const Answer answer = ask({"/proc/self/exe", "run", "--report", "none", "--log", "stderr", "--color", "never",
                               "--verbosity", "2", "--", python, "-c", kProbe, core});
    if (const auto off = line_after(answer.output, "numsan: off: ")) {
        diagnosis.broken("operations: " + *off);
    } else if (answer.output.find(kProbeFound) != answer.output.npos) {
        if (line_after(answer.output, "numsan: operators are seen through record functions")) {
            diagnosis.limited(
                "operations: seen through record functions, which is slower: another library has taken the dispatch "
                "key; a NaN made on purpose was found at its line");
        } else {
            diagnosis.good(
                "operations: seen by a dispatch key's fallback; a NaN made on purpose was found at its line");
        }
    } else {
        diagnosis.broken("operations: a NaN made on purpose was not found (exit status " +
                         std::to_string(answer.status) + "): " + last_line(answer.output));
    }
    check_lines(diagnosis, answer.output);
    return check_adapter(diagnosis, answer.output);
}

/// Returns whether the torch of that Python has a prebuilt adapter.
bool check_python(Diagnosis& diagnosis, const std::vector<std::string>& command, const std::string& core) {
    const std::string name = python_of(command);
    if (name.empty()) {
        if (find_program(command.front())) {
            diagnosis.limited("program: " + command.front() +
                              " is no python program; what it loads is not known before it runs");
        } else {
            diagnosis.broken("program: " + command.front() + " is not there or cannot be run");
        }
        return false;
    }
    const auto python = find_program(name);
    if (!python) {
        diagnosis.broken("python: " + name + " is not there or cannot be run");
        return false;
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
        return false;
    }
    diagnosis.good("python: " + version + " as " + *python);
    if (folder.empty()) {
        diagnosis.broken(
            "torch: this python has none, so no operation would be seen; to ask about another: "
            "numsan doctor -- /path/to/python");
        return false;
    }
    diagnosis.good("torch: " + torch + " in " + folder);
    return !core.empty() && check_operations(diagnosis, *python, core);
}

void check_compiler(Diagnosis& diagnosis, bool prebuilt) {
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
    if (prebuilt)
        return diagnosis.good("compiler: none of c++, g++, clang++ is there, and none is needed for this torch");
    diagnosis.limited(
        "compiler: none of c++, g++, clang++ is there: only a torch whose adapter is prebuilt or in the cache is seen");
}

/// `name` in a folder of the loader's, or else in one of `more` (separated by ':'), as a file: found but not loaded.
std::string library_file(const std::string& name, const std::string& more) {
    std::string folders = "/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu:/usr/lib64:/usr/lib:" + more;
    if (const char* path = std::getenv("LD_LIBRARY_PATH"); path && *path) folders = std::string(path) + ":" + folders;
    std::istringstream list(folders);
    std::string folder;
    while (std::getline(list, folder, ':')) {
        if (folder.empty()) continue;
        folder.append("/").append(name);
        if (exists(folder)) return folder;
    }
    return "";
}

/// Whether kernels are counted that no framework announces. With torch they are announced, and CUPTI is left alone.
void check_cupti(Diagnosis& diagnosis, bool plain) {
    std::string folders;
    for (const std::string& folder : cupti_folders()) folders += folder + ":";
    const std::string cupti = library_file(kCuptiName, folders);
    const std::string other = variable("CUDA_INJECTION64_PATH");
    std::string why;
    if (!other.empty() && base_name(other) != "libnumsan.so") {
        why = "CUDA_INJECTION64_PATH names the library of another tool, " + other;
    } else if (cupti.empty()) {
        why = std::string("no ") + kCuptiName + " here";
    }
    if (!plain) {
        diagnosis.good("cupti: not used with torch" + (why.empty() ? "" : "; " + why));
    } else if (why.empty()) {
        diagnosis.good("cupti: " + cupti + ": kernels are counted, unless a profiler has it");
    } else {
        diagnosis.limited("cupti: kernels are not counted: " + why);
    }
}

#ifdef NUMSAN_NVTX
constexpr char kMarks[] = "; it is shown findings as marks in the domain numsan";
#else
constexpr char kMarks[] = "; it is shown no findings, as numsan was built without nvtx3/nvToolsExt.h";
#endif

/// Whether the program's ranges are known when NVTX announces them.
void check_nvtx(Diagnosis& diagnosis) {
    const std::string other = variable("NVTX_INJECTION64_PATH");
    if (other.empty() || base_name(other) == "libnumsan.so") return;
    diagnosis.limited("nvtx: NVTX_INJECTION64_PATH names the library of another tool, " + other +
                      ": the program's ranges are not known, numsan:ignore among them (that of record_function is)" +
                      kMarks);
}

void check_cuda(Diagnosis& diagnosis, bool plain) {
    const std::string driver = library_file("libcuda.so.1", "/usr/local/cuda/compat:/usr/lib/wsl/lib");
    if (driver.empty()) {
        diagnosis.good("cuda: no libcuda.so.1 here; CPU tensors are scanned");
        return;
    }
#ifdef NUMSAN_CUDA
    diagnosis.good("cuda: " + driver + " is there; its tensors are scanned where they are");
#else
    diagnosis.limited("cuda: " + driver + " is there; this numsan was built without nvcc and scans CPU tensors only");
#endif
    check_cupti(diagnosis, plain);
}

/// By the rules of those who load the adapter.
void check_cache(Diagnosis& diagnosis) {
    const CacheFolder cache = find_cache_folder(Missing::Accept);
    if (cache.path.empty()) {
        diagnosis.broken("cache: " + cache.why);
        return;
    }
    for (const std::string& line : cache.rejected) diagnosis.limited("cache: not " + line);
    if (exists(cache.path) && access(cache.path.c_str(), W_OK | X_OK) != 0) {
        diagnosis.limited("cache: " + cache.path + " cannot be written: only adapters that it has are loaded");
    } else {
        diagnosis.good("cache: " + cache.path);
    }
}

}  // namespace

int doctor(const std::vector<std::string>& command) {
    Diagnosis diagnosis;
    const std::string core = check_library(diagnosis);
    const bool prebuilt = check_python(diagnosis, command, core);
    check_compiler(diagnosis, prebuilt);
    check_cache(diagnosis);
    check_cuda(diagnosis, python_of(command).empty());
    if (!python_of(command).empty()) check_nvtx(diagnosis);
    return diagnosis.finish();
}

}  // namespace numsan::cli
