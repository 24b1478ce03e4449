// How processors with AVX512-BF16 multiply: a tile of 8 x 48 sums stays in registers.
#pragma once
#include "pairs.h"

#define RL_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

namespace rl {
// Pairs of neighbours in `count` rows (up to 16): lane i has row i's.
RL_BF16 inline __m512i gathered(const uint16_t *from, __m512i rows, __mmask16 mask, bool whole) {
    if (whole) return _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), mask, rows, from, 2);
    alignas(64) int32_t at[16], found[16] = {};
    _mm512_store_si512(at, rows);
    for (int i = 0; i < 16; ++i)
        if (mask >> i & 1) found[i] = from[at[i]];
    return _mm512_load_si512(found);
}

// Vectors in pairs: to (pairs, width), a pair a number.
RL_BF16 inline void pack_pairs(Vectors x, long width, uint32_t *to) {
    const long pairs = ceil_div(x.steps, 2);
    for (long c = 0; c < width; c += 16) {
        const long some = std::min(16L, width - c), there = std::max(0L, std::min(some, x.count - c));
        const __mmask16 store = (__mmask16)((1u << some) - 1), mask = (__mmask16)((1u << there) - 1);
        const uint16_t *from = x.data + c * (x.along ? 1 : x.pitch);
        const __m512i rows = _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                                                _mm512_set1_epi32((int)x.pitch));
        for (long k = 0; k < pairs; ++k) {
            const bool whole = 2 * k + 1 < x.steps;
            const uint16_t *low = from + 2 * k * (x.along ? x.pitch : 1);
            const __m512i found = x.along ? joined(low, whole ? low + x.pitch : nullptr, mask) : gathered(low, rows, mask, whole);
            _mm512_mask_storeu_epi32(to + k * width + c, store, found);
        }
    }
}

struct Dots {
    static constexpr long kStrip = 8, kPanel = 48, kDeep = 128, kTall = 96;  // 24 KiB of a panel at once
    struct Ready {
        ~Ready() {}
    };

    static long pairs(long steps) { return ceil_div(steps, 2); }
    static void left(Vectors x, uint32_t *to) { pack_pairs(x, kStrip, to); }
    static void right(Vectors x, uint32_t *to) { pack_pairs(x, kPanel, to); }

    // sums (8, 48) = or += a strip of pairs (pairs, 8) times a panel of them (pairs, 48).
    RL_BF16 static __attribute__((noinline)) void tile(const uint32_t *a, const uint32_t *b, long pairs, long, float *sums, long pitch, bool add) {
        __m512 sum[kStrip][3];
#pragma GCC unroll 8
        for (int i = 0; i < kStrip; ++i)
#pragma GCC unroll 3
            for (int v = 0; v < 3; ++v) sum[i][v] = add ? _mm512_loadu_ps(sums + i * pitch + v * 16) : _mm512_setzero_ps();
        for (long k = 0; k < pairs; ++k) {
            __m512bh right[3];
#pragma GCC unroll 3
            for (int v = 0; v < 3; ++v) right[v] = (__m512bh)_mm512_loadu_si512(b + k * kPanel + v * 16);
#pragma GCC unroll 8
            for (int i = 0; i < kStrip; ++i) {
                const __m512bh left = (__m512bh)_mm512_set1_epi32((int)a[k * kStrip + i]);
#pragma GCC unroll 3
                for (int v = 0; v < 3; ++v) sum[i][v] = _mm512_dpbf16_ps(sum[i][v], left, right[v]);
            }
        }
#pragma GCC unroll 8
        for (int i = 0; i < kStrip; ++i)
#pragma GCC unroll 3
            for (int v = 0; v < 3; ++v) _mm512_storeu_ps(sums + i * pitch + v * 16, sum[i][v]);
    }
};

}  // namespace rl
