// The one way out for text to people: stderr or the file of the option `log`, never stdout.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace numsan {

/// The least `verbosity` at which a text is shown.
enum class Level : uint8_t { Always, Summary, Hint, Debug };

/// Writes each text as a whole with one write(2). Takes no lock and has no thread, so that a forked child may use it at
/// once; a text of another thread may come between two texts, never into one. Nothing throws. [MT] but for the two
/// setters, which come before other threads know of it.
class Log {
  public:
    /// Gives a descriptor for the next text, which is closed after it; -1: stderr.
    using Open = std::function<int()>;

    /// To stderr, every level.
    Log();
    explicit Log(Open open);
    ~Log();

    void set_verbosity(int64_t verbosity);
    void silence();

    bool shows(Level level) const noexcept;

    /// "numsan: LINE" and a newline.
    void line(Level level, std::string_view line) const noexcept;
    /// As it is; it ends its own lines.
    void text(Level level, std::string_view text) const noexcept;

  private:
    class Logger;
    std::unique_ptr<Logger> logger_;
};

/// What is said on stderr wherever the log goes: complaints about options, and why numsan stays off. Lives for ever.
const Log& stderr_log();

}  // namespace numsan
