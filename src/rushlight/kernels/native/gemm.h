// Products of small blocks in registers, for kernels that pack their own operands.
//
// A tile is kRows x kWide numbers: kRows rows of A, a number at a time, times a panel of B, kWide columns side
// by side for each step of the sum (after Goto and van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication", 2008).
#pragma once
#include <cstdlib>

#include "common.h"

namespace rl {

#if defined(__AVX512F__)
constexpr int kBytes = 64, kRows = 8;
#elif defined(__AVX__)
constexpr int kBytes = 32, kRows = 4;
#elif defined(__aarch64__)
constexpr int kBytes = 16, kRows = 8;
#else
constexpr int kBytes = 16, kRows = 4;
#endif
constexpr int kVectors = 3;

template <class T> constexpr int kLanes = kBytes / (int)sizeof(T);
template <class T> constexpr int kWide = kVectors * kLanes<T>;

template <class T> struct Vector;
template <> struct Vector<float> {
    typedef float type __attribute__((vector_size(kBytes), aligned(4), may_alias));
};
template <> struct Vector<double> {
    typedef double type __attribute__((vector_size(kBytes), aligned(8), may_alias));
};

// out (R, kWide), a row every `pitch`, = or += rows of A (each `steps` numbers, `lda` apart; with kPacked R numbers a step) times
// b (steps, kPanel), of which NV vectors count.  ahead: how far behind these rows those lie that are read next, 0 if that is not known.
template <class T, int NV, bool kPacked, int kPanel = kWide<T>, int R = kRows>
static __attribute__((noinline)) void tile(const T *const *a, const T *b, long steps, T *out, long pitch, bool add, long ahead = 0) {
    typedef typename Vector<T>::type V;
    constexpr int L = kLanes<T>;
    V sum[R][NV];
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 3
        for (int v = 0; v < NV; ++v) sum[i][v] = V{};
    const T *row[R];
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) row[i] = a[kPacked ? 0 : i];
    for (long begin = 0, end; begin < steps; begin = end) {
        end = kPacked || !ahead || steps - begin < L ? steps : begin + L;
        if (!kPacked && ahead)
#pragma GCC unroll 8
            for (int i = 0; i < R; ++i) __builtin_prefetch(row[i] + begin + ahead);
        for (long k = begin; k < end; ++k) {
            V right[NV];
#pragma GCC unroll 3
            for (int v = 0; v < NV; ++v) right[v] = *reinterpret_cast<const V *>(b + k * kPanel + v * L);
#pragma GCC unroll 8
            for (int i = 0; i < R; ++i) {
                T left = kPacked ? row[0][k * R + i] : row[i][k];
#pragma GCC unroll 3
                for (int v = 0; v < NV; ++v) sum[i][v] += left * right[v];
            }
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 3
        for (int v = 0; v < NV; ++v) {
            V *at = reinterpret_cast<V *>(out + i * pitch + v * L);
            *at = add ? *at + sum[i][v] : sum[i][v];
        }
}

// The tile for a panel of `columns` columns.
template <class T, bool kPacked>
RL_INLINE void product(const T *const *a, const T *b, long steps, long columns, T *out, long pitch, bool add, long ahead = 0) {
    if (columns > 2 * kLanes<T>) tile<T, 3, kPacked>(a, b, steps, out, pitch, add, ahead);
    else if (columns > kLanes<T>) tile<T, 2, kPacked>(a, b, steps, out, pitch, add, ahead);
    else tile<T, 1, kPacked>(a, b, steps, out, pitch, add, ahead);
}

// Pointers to kRows rows from `first` on; rows past `count` stand for the last.
template <class T> struct Rows {
    const T *at[kRows];
    Rows(const T *a, long lda, long first, long count) {
        for (int i = 0; i < kRows; ++i) at[i] = a + (first + i < count ? first + i : count - 1) * lda;
    }
};

// A buffer for each thread and slot, kept between calls and grown when needed.
template <class T, int kSlot> T *scratch(long count) {
    struct Buffer {
        void *data = nullptr;
        size_t bytes = 0;
        ~Buffer() { std::free(data); }
    };
    static thread_local Buffer mine;
    size_t wanted = ((size_t)count * sizeof(T) + 127) / 64 * 64;
    if (mine.bytes < wanted) {
        std::free(mine.data);
        mine.data = std::aligned_alloc(64, wanted);
        mine.bytes = mine.data ? wanted : 0;
        if (!mine.data) std::abort();
    }
    return static_cast<T *>(mine.data);
}

}  // namespace rl
