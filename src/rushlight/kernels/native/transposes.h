// Blocks of numbers transposed, in registers where the processor has AVX-512.
#pragma once
#include <algorithm>

#include "gemm.h"
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace rl {

// to (16, 8) = or += from (8, 16) transposed, rows a pitch apart; where there is nothing for it, false.
template <class T> RL_INLINE bool transpose_block(const T *, long, T *, long, bool) { return false; }
#if defined(__AVX512F__)
RL_INLINE bool transpose_block(const float *from, long pitch, float *to, long to_pitch, bool add) {
    __m512 half[2][4];  // of four rows each: in every 128 bits of half[h][j] a column of 4 x 4 numbers
    for (int h = 0; h < 2; ++h) {
        __m512 row[4];
        for (int i = 0; i < 4; ++i) row[i] = _mm512_loadu_ps(from + (4 * h + i) * pitch);
        const __m512d low0 = _mm512_castps_pd(_mm512_unpacklo_ps(row[0], row[1])), high0 = _mm512_castps_pd(_mm512_unpackhi_ps(row[0], row[1]));
        const __m512d low1 = _mm512_castps_pd(_mm512_unpacklo_ps(row[2], row[3])), high1 = _mm512_castps_pd(_mm512_unpackhi_ps(row[2], row[3]));
        half[h][0] = _mm512_castpd_ps(_mm512_unpacklo_pd(low0, low1));
        half[h][1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low0, low1));
        half[h][2] = _mm512_castpd_ps(_mm512_unpacklo_pd(high0, high1));
        half[h][3] = _mm512_castpd_ps(_mm512_unpackhi_pd(high0, high1));
    }
    const auto put = [&](auto lane) {
        constexpr int kLane = decltype(lane)::value;
        for (int j = 0; j < 4; ++j)
            for (int h = 0; h < 2; ++h) {
                float *at = to + (4 * kLane + j) * to_pitch + 4 * h;
                const __m128 four = _mm512_extractf32x4_ps(half[h][j], kLane);
                _mm_storeu_ps(at, add ? _mm_add_ps(_mm_loadu_ps(at), four) : four);
            }
    };
    put(std::integral_constant<int, 0>()), put(std::integral_constant<int, 1>());
    put(std::integral_constant<int, 2>()), put(std::integral_constant<int, 3>());
    return true;
}
#endif

// to (columns, rows) = or += from (rows, columns) transposed.
template <class T> static void transpose(const T *from, long pitch, long rows, long columns, T *to, long to_pitch, bool add) {
    long i = 0;
    for (; i + 8 <= rows; i += 8) {
        long j = 0;
        for (; j + 16 <= columns && transpose_block(from + i * pitch + j, pitch, to + j * to_pitch + i, to_pitch, add); j += 16) {}
        for (; j < columns; ++j)
            for (long r = i; r < i + 8; ++r) to[j * to_pitch + r] = add ? to[j * to_pitch + r] + from[r * pitch + j] : from[r * pitch + j];
    }
    for (; i < rows; ++i)
        for (long j = 0; j < columns; ++j) to[j * to_pitch + i] = add ? to[j * to_pitch + i] + from[i * pitch + j] : from[i * pitch + j];
}

// How many of `columns` columns (steps side by side in memory) of `rows` vectors went to a panel by a faster way than `transpose`.
template <class T> RL_INLINE long pack_lanes(const T *, long, long, T *) { return 0; }
#if defined(__AVX512F__)
// 16 vectors, four steps at a time: a register takes four steps of the vectors i, i + 4, i + 8 and i + 12, so that only four by four
// numbers within 128 bits are left to be transposed.
RL_INLINE long pack_lanes(const float *from, long pitch, long steps, float *to) {
    long s = 0;
    for (; s + 4 <= steps; s += 4, to += 4 * kWide<float>) {
        __m512 row[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
            const float *at = from + i * pitch + s;
            row[i] = _mm512_castps128_ps512(_mm_loadu_ps(at));
            row[i] = _mm512_mask_broadcast_f32x4(row[i], 0x00f0, _mm_loadu_ps(at + 4 * pitch));
            row[i] = _mm512_mask_broadcast_f32x4(row[i], 0x0f00, _mm_loadu_ps(at + 8 * pitch));
            row[i] = _mm512_mask_broadcast_f32x4(row[i], 0xf000, _mm_loadu_ps(at + 12 * pitch));
        }
        const __m512d low0 = _mm512_castps_pd(_mm512_unpacklo_ps(row[0], row[1])), high0 = _mm512_castps_pd(_mm512_unpackhi_ps(row[0], row[1]));
        const __m512d low1 = _mm512_castps_pd(_mm512_unpacklo_ps(row[2], row[3])), high1 = _mm512_castps_pd(_mm512_unpackhi_ps(row[2], row[3]));
        _mm512_storeu_ps(to, _mm512_castpd_ps(_mm512_unpacklo_pd(low0, low1)));
        _mm512_storeu_ps(to + kWide<float>, _mm512_castpd_ps(_mm512_unpackhi_pd(low0, low1)));
        _mm512_storeu_ps(to + 2 * kWide<float>, _mm512_castpd_ps(_mm512_unpacklo_pd(high0, high1)));
        _mm512_storeu_ps(to + 3 * kWide<float>, _mm512_castpd_ps(_mm512_unpackhi_pd(high0, high1)));
    }
    return s;
}
#endif

// `some` vectors of `steps` numbers, `pitch` apart, to a panel (steps, kWide).
template <class T> static void pack_turned(const T *from, long pitch, long steps, long some, T *to) {
    for (long s = 0; s < steps; s += 64) {  // as many as stay in the first-level cache
        const long here = std::min(64L, steps - s);
        for (long c = 0, wide = 0; c < some; c += wide) {
            wide = std::min<long>(some - c, kLanes<T>);
            const T *block = from + s + c * pitch;
            T *panel = to + s * kWide<T> + c;
            const long done = wide == kLanes<T> ? pack_lanes(block, pitch, here, panel) : 0;
            transpose(block + done, pitch, wide, here - done, panel + done * kWide<T>, kWide<T>, false);
        }
    }
}

}  // namespace rl
