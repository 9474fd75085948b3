#include "host/log/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/sink.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

namespace numsan {
namespace {

/// The whole text, also over short writes and interruptions. A failed write is not reported: there is no place left.
void write_all(int fd, std::string_view text) noexcept {
    size_t done = 0;
    while (done < text.size()) {
        const ssize_t written = ::write(fd, text.data() + done, text.size() - done);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return;
        done += static_cast<size_t>(written);
    }
}

/// Has no mutex, where spdlog's own sinks do: a fork while one is held would leave it held in the child for ever.
class OneWrite final : public spdlog::sinks::sink {
  public:
    explicit OneWrite(Log::Open open) : open_(std::move(open)) {}

    void log(const spdlog::details::log_msg& message) override {
        const int saved_errno = errno;
        const int fd = open_ ? open_() : -1;
        write_all(fd < 0 ? STDERR_FILENO : fd, {message.payload.data(), message.payload.size()});
        if (fd >= 0) ::close(fd);
        errno = saved_errno;
    }
    void flush() override {}
    void set_pattern(const std::string&) override {}
    void set_formatter(std::unique_ptr<spdlog::formatter>) override {}

  private:
    Log::Open open_;
};

constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::err, spdlog::level::warn, spdlog::level::info,
                                                 spdlog::level::debug};

spdlog::level::level_enum level_of(Level level) { return kLevels[static_cast<size_t>(level)]; }

}  // namespace

class Log::Logger final : public spdlog::logger {
  public:
    explicit Logger(Open open) : spdlog::logger("numsan", std::make_shared<OneWrite>(std::move(open))) {
        set_level(spdlog::level::debug);
        set_error_handler([](const std::string&) {});  // spdlog's own prints, under a mutex
    }
};

Log::Log() : Log(Open()) {}

Log::Log(Open open) : logger_(std::make_unique<Logger>(std::move(open))) {}

Log::~Log() = default;

void Log::set_verbosity(int64_t verbosity) {
    const auto most = static_cast<int64_t>(std::size(kLevels)) - 1;
    logger_->set_level(kLevels[std::clamp<int64_t>(verbosity, 0, most)]);
}

void Log::silence() { logger_->set_level(spdlog::level::off); }

bool Log::shows(Level level) const noexcept { return logger_->should_log(level_of(level)); }

void Log::line(Level level, std::string_view line) const noexcept {
    logger_->log(level_of(level), "numsan: {}\n", line);
}

void Log::text(Level level, std::string_view text) const noexcept {
    logger_->log(level_of(level), spdlog::string_view_t(text.data(), text.size()));
}

const Log& stderr_log() {
    static const Log* log = new Log;
    return *log;
}

}  // namespace numsan
