// How many bytes were asked for of a block that the C library gave: NumPy does not say it when it wants another size, and the C library
// knows it rounded up.  At the end of a small block stands how many bytes there are beyond those that were asked for.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#ifdef __APPLE__
#include <malloc/malloc.h>
#else
#include <malloc.h>
#endif

namespace rl {

constexpr size_t kLarge = 32768;  // bytes from which on a block is in the table also when nothing is recorded

using Spare = uint16_t;

inline size_t usable(void *block) {
#ifdef __APPLE__
    return malloc_size(block);
#else
    return malloc_usable_size(block);
#endif
}

// What to ask the C library for.
inline size_t with_spare(size_t bytes) { return bytes < kLarge ? bytes + sizeof(Spare) : bytes; }

// Where that number stands in a block of so many usable bytes.  The compiler must not see where the block comes from: it knows how much
// was asked for there, and what it is told to check (_FORTIFY_SOURCE=3, which Ubuntu's GCC has on) stops the process at the bytes beyond.
inline char *spare_of(void *block, size_t size) {
    __asm__("" : "+r"(block));
    return static_cast<char *>(block) + size - sizeof(Spare);
}

// A block that was asked for so, its end written.
inline void *marked(void *block, size_t bytes) {
    if (!block || bytes >= kLarge) return block;
    const size_t size = usable(block);
    const auto spare = Spare(size - bytes);
    if (size < kLarge) std::memcpy(spare_of(block, size), &spare, sizeof spare);
    return block;
}

// The bytes that were asked for; of a block that just is no small one, as many as it has.
inline size_t size_by_end(void *block) {
    const size_t size = usable(block);
    Spare spare = 0;
    if (size < kLarge) std::memcpy(&spare, spare_of(block, size), sizeof spare);
    return size - spare;
}

}  // namespace rl
