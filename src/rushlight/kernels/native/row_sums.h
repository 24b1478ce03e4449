// Elements of a row joined, in an order that their number alone decides.
#pragma once
#include "lanes.h"
#include "sixteen.h"

namespace rl {

constexpr long kRun = 1 << 12;    // elements added up in their own precision
constexpr long kPiece = 1 << 16;  // elements of one row that a thread joins
constexpr long kRows = 1024;      // rows added up in their own precision
constexpr long kUnit = 256;       // columns joined together: long enough to be read ahead, short enough to stay in the cache

// The elements of a row joined in the lanes of four vectors, which are joined in pairs.
template <class T, class F, class J> RL_INLINE T row_joined(const T *x, long n, T first, F f, J join) {
    typedef T Vector __attribute__((vector_size(64)));
    constexpr int kWide = 64 / (int)sizeof(T), kLanes = 4 * kWide;
    if (n < kWide) {
        T found = first;
        for (long i = 0; i < n; ++i) found = join(found, f(x[i]));
        return found;
    }
    Vector part[4], v;
    for (int k = 0; k < 4; ++k) part[k] = Vector{} + first;
    long i = 0;
    for (; i + kLanes <= n; i += kLanes)
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) {
            std::memcpy(&v, x + i + k * kWide, sizeof v);
            part[k] = join(part[k], f(v));
        }
    part[0] = join(join(part[0], part[1]), join(part[2], part[3]));
    for (; i + kWide <= n; i += kWide) {
        std::memcpy(&v, x + i, sizeof v);
        part[0] = join(part[0], f(v));
    }
    if (i < n) {  // those of the last vector that were not among them
        std::memcpy(&v, x + n - kWide, sizeof v);
        part[0] = join(part[0], Lanes<T>::all >= (int)(kWide - (n - i)) ? f(v) : Vector{} + first);
    }
    return lanes_joined(reinterpret_cast<const T *>(&part[0]), join);
}

template <class U, class F> RL_INLINE double row_sum(const U *x, long n, F f) {
    double total = 0;
    pieces<kRun>(x, n, [&](long, const WideOf<U> *v, long some) {
        total += row_joined(v, some, WideOf<U>(0), f, [](auto a, auto b) { return a + b; });
    });
    return total;
}

}  // namespace rl
