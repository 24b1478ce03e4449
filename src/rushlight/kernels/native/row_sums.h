// Elements of a row joined, in an order that their number alone decides.
#pragma once
#include "lanes.h"
#include "sixteen.h"

namespace rl {

constexpr long kRun = 1 << 12;    // elements added up in their own precision
constexpr long kPiece = 1 << 16;  // elements of one row that a thread joins
constexpr long kRows = 1024;      // rows added up in their own precision
constexpr long kUnit = 256;       // columns joined together: long enough to be read ahead, short enough to stay in the cache

// The vector of numbers that begins at `x`.
template <class V, class U> RL_INLINE void read(V &v, const U *x) {
    if constexpr (kPlain<U>) {
        std::memcpy(&v, x, sizeof v);
    } else {
        constexpr int kWide = sizeof v / sizeof(float);
#if defined(RL_SIXTEEN)
        for (int k = 0; k < kWide; k += kLanesOf16) {
            const Wide16 some = lanes(x + k);
            std::memcpy(reinterpret_cast<float *>(&v) + k, &some, sizeof some);
        }
#else
        for (int k = 0; k < kWide; ++k) v[k] = widened(x[k]);
#endif
    }
}

// The elements of a row joined in the lanes of four vectors, which are joined in pairs.
template <class U, class F, class J, class T = WideOf<U>> RL_INLINE T row_joined(const U *x, long n, T first, F f, J join) {
    typedef T Vector __attribute__((vector_size(64)));
    constexpr int kWide = 64 / (int)sizeof(T), kLanes = 4 * kWide;
    if (n < kWide) {
        T found = first;
        for (long i = 0; i < n; ++i) found = join(found, f(widened(x[i])));
        return found;
    }
    Vector part[4], v;
    for (int k = 0; k < 4; ++k) part[k] = Vector{} + first;
    long i = 0;
    for (; i + kLanes <= n; i += kLanes)
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) {
            read(v, x + i + k * kWide);
            part[k] = join(part[k], f(v));
        }
    part[0] = join(join(part[0], part[1]), join(part[2], part[3]));
    for (; i + kWide <= n; i += kWide) {
        read(v, x + i);
        part[0] = join(part[0], f(v));
    }
    if (i < n) {  // those of the last vector that were not among them
        read(v, x + n - kWide);
        part[0] = join(part[0], Lanes<T>::all >= (int)(kWide - (n - i)) ? f(v) : Vector{} + first);
    }
    return lanes_joined(reinterpret_cast<const T *>(&part[0]), join);
}

template <class U, class F> RL_INLINE double row_sum(const U *x, long n, F f) {
    double total = 0;
    for (long at = 0; at < n; at += kRun)
        total += row_joined(x + at, n - at < kRun ? n - at : kRun, WideOf<U>(0), f, [](auto a, auto b) { return a + b; });
    return total;
}

// run[c] = join(run[c], from[c]) of N rows of `some` columns, one after the other: `run` is read and written less often than they are.
template <int N, class U, class J, class T = WideOf<U>> RL_INLINE void join_rows(const U *from, long pitch, T *run, long some, J join) {
    long c = 0;
#if defined(RL_SIXTEEN)
    if constexpr (!kPlain<U>)
        for (; c + kLanesOf16 <= some; c += kLanesOf16) {
            Wide16 joined = lanes(run + c);
#pragma GCC unroll 4
            for (int r = 0; r < N; ++r) joined = join(joined, Wide16(lanes(from + r * pitch + c)));
            store_lanes(run + c, joined);
        }
#endif
#pragma omp simd
    for (long k = c; k < some; ++k) {
        T joined = run[k];
#pragma GCC unroll 4
        for (int r = 0; r < N; ++r) joined = join(joined, widened(from[r * pitch + k]));
        run[k] = joined;
    }
}

// The same of any number of rows.
template <class U, class J, class T = WideOf<U>> RL_INLINE void join_all_rows(const U *from, long rows, long pitch, T *run, long some, J join) {
    long r = 0;
    for (; r + 4 <= rows; r += 4) join_rows<4>(from + r * pitch, pitch, run, some, join);
    for (; r < rows; ++r) join_rows<1>(from + r * pitch, pitch, run, some, join);
}

}  // namespace rl
