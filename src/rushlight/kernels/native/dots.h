// How processors with AVX512-BF16 multiply: a tile of 8 x 48 sums stays in registers.
#pragma once
#include "conv_pairs.h"

namespace rl {
// Up to 16 vectors in pairs, a row of 16 numbers for each pair.
template <class To> RL_BF16 inline void pack_pairs(const Vectors &x, To to) {
    if (x.along) {
        const __mmask16 mask = first_of(x.count);
        const uint16_t *low = x.data;
        for (long k = 0; k < ceil_div(x.steps, 2); ++k, low += 2 * x.pitch)
            to(k, joined(low, 2 * k + 1 < x.steps ? low + x.pitch : nullptr, mask));
        return;
    }
    for (long pair = 0; 2 * pair < x.steps; pair += 16) {
        const long steps = std::min(32L, x.steps - 2 * pair);
        const __mmask32 mask = (__mmask32)((1ull << steps) - 1);
        const uint16_t *from = x.data + 2 * pair;
        turned(
            ceil_div(steps, 2),
            [&](int i) RL_BF16 { return _mm512_maskz_loadu_epi16(i < x.count ? mask : 0, from + (i < x.count ? i : 0) * x.pitch); },
            [&](int k, __m512i row) RL_BF16 { to(pair + k, row); });
    }
}

struct Dots {
    using Number = OfBfloat16;
    static constexpr auto put = store;
    static constexpr long kTogether = 2, kStrip = 8, kStrips = 2, kPanel = 48, kDeep = 128, kTall = 96;  // 24 KiB of a panel at once
    struct Ready {
        ~Ready() {}
    };
    struct ReadyFor {
        explicit ReadyFor(long) {}
        ~ReadyFor() {}
    };

    static long pairs(long steps) { return ceil_div(steps, 2); }
    static void left(const Vectors &x, uint32_t *to) { pack_pairs(x, ToStrips{to, pairs(x.steps) * kStrip, x.count > kStrip}); }
    static void right(const Vectors &x, uint32_t *to) {
        for (long c = 0; c < x.count; c += 16) pack_pairs(x.from(c, 16), ToPanel{to + c, kPanel});
    }

    // sums (8, 48) = or += a strip of pairs (pairs, 8) times a panel of them (pairs, 48), of which NV vectors count.
    template <int NV>
    RL_BF16 static __attribute__((noinline)) void vectors(const uint32_t *a, const uint32_t *b, long pairs, float *sums, long pitch, bool add) {
        __m512 sum[kStrip][NV];
#pragma GCC unroll 8
        for (int i = 0; i < kStrip; ++i)
#pragma GCC unroll 3
            for (int v = 0; v < NV; ++v) sum[i][v] = add ? _mm512_loadu_ps(sums + i * pitch + v * 16) : _mm512_setzero_ps();
        for (long k = 0; k < pairs; ++k) {
            __m512bh right[NV];
#pragma GCC unroll 3
            for (int v = 0; v < NV; ++v) right[v] = (__m512bh)_mm512_loadu_si512(b + k * kPanel + v * 16);
#pragma GCC unroll 8
            for (int i = 0; i < kStrip; ++i) {
                const __m512bh left = (__m512bh)_mm512_set1_epi32((int)a[k * kStrip + i]);
#pragma GCC unroll 3
                for (int v = 0; v < NV; ++v) sum[i][v] = _mm512_dpbf16_ps(sum[i][v], left, right[v]);
            }
        }
#pragma GCC unroll 8
        for (int i = 0; i < kStrip; ++i)
#pragma GCC unroll 3
            for (int v = 0; v < NV; ++v) _mm512_storeu_ps(sums + i * pitch + v * 16, sum[i][v]);
    }

    static void tile(const uint32_t *a, const uint32_t *b, long pairs, long, long columns, float *sums, long pitch, bool add) {
        const auto some = columns > 32 ? vectors<3> : columns > 16 ? vectors<2> : vectors<1>;
        some(a, b, pairs, sums, pitch, add);
    }

    // sums (32, 32) = or += those of `count` terms of `deep` pairs (see conv_pairs.h), of which the left or both halves, and the upper or both.
    static void block(const void *a, const void *b, const Term *terms, long count, Strides s, long deep, bool lower, bool right, bool add,
                      float *sums) {
        const auto eight = right ? eight_rows<2> : eight_rows<1>;
        for (long row = 0; row < (lower ? kSquare : kSquare / 2); row += kStrip) {
            const char *left = static_cast<const char *>(a) + (row >= 16 ? s.a_next : 0) + row % 16 * s.a_row;
            eight(left, static_cast<const char *>(b), terms, count, s, deep, add, sums + row * kSquare);
        }
    }

    template <int NV>
    RL_BF16 static __attribute__((noinline)) void eight_rows(const char *a, const char *b, const Term *terms, long count, Strides s, long deep, bool add,
                                                             float *sums) {
        __m512 sum[kStrip][NV];
#pragma GCC unroll 8
        for (int i = 0; i < kStrip; ++i)
#pragma GCC unroll 2
            for (int v = 0; v < NV; ++v) sum[i][v] = add ? _mm512_loadu_ps(sums + i * kSquare + v * 16) : _mm512_setzero_ps();
        for (long t = 0; t < count; ++t) {
            const char *left = a + terms[t].a, *top = b + terms[t].b;
            for (long k = 0; k < deep; ++k, left += 4, top += s.b_row) {
                __m512bh across[NV];
#pragma GCC unroll 2
                for (int v = 0; v < NV; ++v) across[v] = (__m512bh)_mm512_loadu_si512(top + v * s.b_next);
#pragma GCC unroll 8
                for (int i = 0; i < kStrip; ++i) {
                    int pair;
                    std::memcpy(&pair, left + i * s.a_row, sizeof pair);
#pragma GCC unroll 2
                    for (int v = 0; v < NV; ++v) sum[i][v] = _mm512_dpbf16_ps(sum[i][v], (__m512bh)_mm512_set1_epi32(pair), across[v]);
                }
            }
        }
#pragma GCC unroll 8
        for (int i = 0; i < kStrip; ++i)
#pragma GCC unroll 2
            for (int v = 0; v < NV; ++v) _mm512_storeu_ps(sums + i * kSquare + v * 16, sum[i][v]);
    }
};

}  // namespace rl
