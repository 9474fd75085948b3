// A wheel that is made with glibc 2.36 or later runs with the glibc before: the static libstdc++ brings
// std::random_device, which nothing here uses, and that asks for arc4random(), which glibc has since 2.36.
#include <sys/random.h>

#include <cstdint>

extern "C" __attribute__((visibility("hidden"))) uint32_t arc4random() noexcept {
    uint32_t value = 0;
    return getrandom(&value, sizeof value, 0) == sizeof value ? value : 0;
}
