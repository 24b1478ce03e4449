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

// How a tile reads its factors.
enum Reads {
    kByRows,    // rows of A where they lie, of B a panel
    kByPanels,  // of A kRows numbers a step, of B a panel
    kInPlace,   // rows of A and of B where they lie
};
constexpr long kAhead = 8;  // steps: how far ahead rows of B are asked for that lie apart

// out (R, kWide), a row every `pitch`, = or += rows of A (each `steps` numbers) times b (steps, kPanel), of which NV vectors count.
// apart: of kByRows, how far behind these rows of A those lie that are read next, 0 if that is not known; of kInPlace, between two rows of B.
template <class T, int NV, Reads kReads, int kPanel = kWide<T>, int R = kRows>
static __attribute__((noinline)) void tile(const T *const *a, const T *b, long steps, T *out, long pitch, bool add, long apart = 0) {
    typedef typename Vector<T>::type V;
    constexpr int L = kLanes<T>;
    constexpr bool kPacked = kReads == kByPanels, kLies = kReads == kInPlace;
    V sum[R][NV];
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 3
        for (int v = 0; v < NV; ++v) sum[i][v] = V{};
    const T *row[R];
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) row[i] = a[kPacked ? 0 : i];
    const long step = kLies ? apart : kPanel;
    for (long begin = 0, end; begin < steps; begin = end) {
        end = kReads != kByRows || !apart || steps - begin < L ? steps : begin + L;
        if (kReads == kByRows && apart)
#pragma GCC unroll 8
            for (int i = 0; i < R; ++i) __builtin_prefetch(row[i] + begin + apart);
        for (long k = begin; k < end; ++k) {
            V right[NV];
#pragma GCC unroll 3
            for (int v = 0; v < NV; ++v) right[v] = *reinterpret_cast<const V *>(b + k * step + v * L);
            if (kLies)
#pragma GCC unroll 3
                for (int v = 0; v < NV; ++v) __builtin_prefetch(b + (k + kAhead) * step + v * L);
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
template <class T, Reads kReads>
RL_INLINE void product(const T *const *a, const T *b, long steps, long columns, T *out, long pitch, bool add, long apart = 0) {
    if (columns > 2 * kLanes<T>) tile<T, 3, kReads>(a, b, steps, out, pitch, add, apart);
    else if (columns > kLanes<T>) tile<T, 2, kReads>(a, b, steps, out, pitch, add, apart);
    else tile<T, 1, kReads>(a, b, steps, out, pitch, add, apart);
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
