#include "tests/gpu/probe/report.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace numsan::gpu::probe {

Report::Report(std::string path, Json head, const std::vector<std::string>& phases)
    : path_(std::move(path)), document_(std::move(head)) {
    document_["under_way"] = nullptr;
    Json& all = document_["phases"] = Json::object();
    for (const std::string& phase : phases) all[phase] = {{"result", "not run"}};
}

void Report::begin(const std::string& phase) {
    const std::lock_guard lock(mutex_);
    document_["under_way"] = phase;
    document_["phases"][phase] = {{"result", "under way"}};
    write();
}

void Report::note(const Json& data) {
    const std::lock_guard lock(mutex_);
    document_["phases"][document_["under_way"].get<std::string>()]["data"] = data;
    write();
}

void Report::end(const std::string& phase, const std::string& result, double seconds, const std::string& line,
                 const Json& data, const Json& failure) {
    const std::lock_guard lock(mutex_);
    Json& entry = document_["phases"][phase];
    const Json noted = entry.value("data", Json::object());
    entry = {{"result", result}, {"seconds", seconds}, {"line", line}};
    if (!failure.is_null()) entry["failure"] = failure;
    entry["data"] = data.is_null() ? noted : data;
    document_["under_way"] = nullptr;
    write();
}

void Report::finish() {
    const std::lock_guard lock(mutex_);
    document_["finished"] = true;
    write();
}

void Report::write() {
    if (path_.empty()) return;
    const std::string temporary = path_ + ".tmp";
    // Text of the driver's may be anything.
    const std::string text = document_.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
    std::FILE* file = std::fopen(temporary.c_str(), "w");
    bool good = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
    if (file != nullptr) good = std::fclose(file) == 0 && good;
    good = good && std::rename(temporary.c_str(), path_.c_str()) == 0;
    if (!good && written_) std::perror(("numsan_gpu_probe: " + path_).c_str());
    written_ = written_ && good;
}

Watchdog::~Watchdog() {
    {
        const std::lock_guard lock(mutex_);
        over_ = true;
        changed_.notify_all();
    }
    thread_.join();
}

void Watchdog::arm(const std::string& phase, double seconds) {
    const std::lock_guard lock(mutex_);
    phase_ = phase;
    begin_ = Clock::now();
    end_ = begin_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    changed_.notify_all();
}

void Watchdog::watch() {
    std::unique_lock lock(mutex_);
    while (!over_) {
        if (phase_.empty()) {
            changed_.wait(lock);
        } else if (Clock::now() < end_) {
            changed_.wait_until(lock, end_);
        } else {
            const double seconds = seconds_since(begin_);
            const std::string line = "a call of the driver's or a kernel does not end; what comes after it was not run";
            report_.end(phase_, "timed out", seconds, line, nullptr, {{"what", line}});
            print_line(phase_, "timed out", seconds, line);
            std::fflush(stdout);
            _exit(1);
        }
    }
}

void print_line(const std::string& phase, const std::string& result, double seconds, const std::string& line) {
    std::printf("%-9s %-9s %6.1f s  %s\n", phase.c_str(), result.c_str(), seconds, line.c_str());
    std::fflush(stdout);
}

}  // namespace numsan::gpu::probe
