#include "interpose/torch/hook/raised_error.h"

#include <exception>
#include <string>
#include <utility>

/// torch's class of this name (torch/csrc/Exceptions.h), member for member: exceptions are caught by the name of their
/// class. Its header needs Python's, which a machine that compiles the adapter may not have. torch reads the members
/// where it catches it (restore(), persist()), and destroys it by the virtual destructor, which is ours.
struct __attribute__((visibility("default"))) python_error final : public std::exception {
  public:
    python_error(const numsan::CoreApi& core, const numsan::RaisedError& error)
        : type(error.type),
          value(error.value),
          traceback(error.traceback),
          message(error.text != nullptr ? error.text : "python_error"),
          drop_error_(core.drop_error) {}
    python_error(const python_error&) = delete;
    python_error& operator=(const python_error&) = delete;
    ~python_error() override;
    const char* what() const noexcept override { return message.c_str(); }

    void* type;
    void* value;
    void* traceback;
    std::string message;

  private:
    void (*drop_error_)(numsan::RaisedError&);
};

python_error::~python_error() {
    numsan::RaisedError left{type, value, traceback, nullptr};
    if (type != nullptr && drop_error_ != nullptr) drop_error_(left);
}

namespace numsan {

void throw_error_of(const CoreApi& core) {
    RaisedError error;
    if (core.take_error(error)) throw python_error(core, error);
}

}  // namespace numsan
