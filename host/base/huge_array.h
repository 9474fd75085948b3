// A table that is read and written all over: on huge pages where the system gives them, so that it costs few address
// translations.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <type_traits>

namespace numsan {

/// Fixed length, address-stable. Elements start as zero bytes, which must be a value of T's; a page that is never
/// written takes no memory. Throws std::bad_alloc.
template <class T>
class HugeArray {
    static_assert(std::is_trivially_destructible_v<T>);

  public:
    enum class Pages { Huge, Small };

    /// Small pages cost memory only where they are touched.
    explicit HugeArray(size_t length, Pages pages = Pages::Huge)
        : bytes_((length * sizeof(T) + kPage - 1) / kPage * kPage) {
        // Mapped one page larger and cut: mmap aligns to small pages only.
        void* mapped =
            mmap(nullptr, bytes_ + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mapped == MAP_FAILED) throw std::bad_alloc();
        char* begin = static_cast<char*>(mapped);
        const size_t before = (kPage - reinterpret_cast<size_t>(begin) % kPage) % kPage;
        if (before > 0) munmap(begin, before);
        if (before < kPage) munmap(begin + before + bytes_, kPage - before);
        // A wish; small pages serve as well.
        madvise(begin + before, bytes_, pages == Pages::Huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
        elements_ = reinterpret_cast<T*>(begin + before);
    }
    ~HugeArray() { munmap(elements_, bytes_); }
    HugeArray(const HugeArray&) = delete;
    HugeArray& operator=(const HugeArray&) = delete;

    T& operator[](size_t i) noexcept { return elements_[i]; }
    const T& operator[](size_t i) const noexcept { return elements_[i]; }

  private:
    static constexpr size_t kPage = size_t(2) << 20;
    size_t bytes_;
    T* elements_;
};

}  // namespace numsan
