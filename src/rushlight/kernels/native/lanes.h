// Elements of one vector.
#pragma once
#include <cstring>

#include "common.h"

namespace rl {

template <class T> constexpr long kVector = 64 / (long)sizeof(T);  // elements of one

// Which of them is which.
template <class T> struct Lanes;
template <> struct Lanes<float> {
    typedef int32_t Index __attribute__((vector_size(64)));
    static constexpr Index all = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
};
template <> struct Lanes<double> {
    typedef int64_t Index __attribute__((vector_size(64)));
    static constexpr Index all = {0, 1, 2, 3, 4, 5, 6, 7};
};

// The lanes of one vector joined by halves.
template <class T, class J> RL_INLINE T lanes_joined(const T *lane, J join) {
    typedef T Half __attribute__((vector_size(32)));
    typedef T Quarter __attribute__((vector_size(16)));
    constexpr int kHalf = 32 / (int)sizeof(T), kQuarter = kHalf / 2;
    Half a, b;
    std::memcpy(&a, lane, sizeof a);
    std::memcpy(&b, lane + kHalf, sizeof b);
    a = join(a, b);
    Quarter c, d;
    std::memcpy(&c, &a, sizeof c);
    std::memcpy(&d, reinterpret_cast<const T *>(&a) + kQuarter, sizeof d);
    c = join(c, d);
    T found = join(c[0], c[1]);
    if (kQuarter == 4) found = join(found, join(c[2], c[3]));
    return found;
}

}  // namespace rl
