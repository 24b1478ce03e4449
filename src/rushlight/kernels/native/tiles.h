// How processors with AMX multiply: tiles of 16 rows of 64 bytes, each a register, by one instruction (Intel, "Intrinsics for
// Advanced Matrix Extensions", 2020).  Four of them hold 32 x 32 sums.
#pragma once
#include "conv_pairs.h"

#define RL_TILES __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,amx-tile,amx-bf16")))

namespace rl {
constexpr long kSide = 16, kTile = kSide * kSide;  // pairs in a row of a tile, and in all of it

// 16 vectors from `first` on, 16 pairs of steps from `pair` on, 0 where there are none, to a tile: a row for each vector
// (`by_vector`), or one for each pair.
RL_TILES inline void pack_tile(const Vectors &x, long first, long pair, bool by_vector, uint32_t *to) {
    const long there = std::max(0L, std::min(kSide, x.count - first)), steps = std::min(2 * kSide, x.steps - 2 * pair);
    __m512i v[kSide];
    if (x.along) {
        const __mmask16 mask = (__mmask16)((1u << there) - 1);
        const uint16_t *from = x.data + first + 2 * pair * x.pitch;
        for (int k = 0; k < kSide; ++k, from += 2 * x.pitch)
            v[k] = 2 * k < steps ? joined(from, 2 * k + 1 < steps ? from + x.pitch : nullptr, mask) : _mm512_setzero_si512();
    } else {
        const __mmask32 mask = (__mmask32)((1ull << steps) - 1);
        const uint16_t *from = x.data + first * x.pitch + 2 * pair;
        for (int i = 0; i < kSide; ++i, from += x.pitch)
            v[i] = i < there ? _mm512_maskz_loadu_epi16(mask, from) : _mm512_setzero_si512();
    }
    if (x.along == by_vector) transpose(v);
    for (int i = 0; i < kSide; ++i) _mm512_store_si512(to + i * kSide, v[i]);
}

struct alignas(64) Shapes {  // what LDTILECFG reads
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static const Shapes kShapes;  // in memory: the intrinsic tells the compiler of its first bytes only

// Of products of `pairs` pairs, up to 16: the tiles 4 and 5, of left factors, and 6 and 7 are smaller.
struct AllShapes {
    Shapes of[kSide + 1];
    AllShapes() {
        for (int pairs = 1; pairs <= kSide; ++pairs)
            for (int half = 0; half < 2; ++half) of[pairs].bytes[4 + half] = (uint16_t)(4 * pairs), of[pairs].rows[6 + half] = (uint8_t)pairs;
    }
};
static const AllShapes kAllShapes;

struct Tiles {
    using Number = OfBfloat16;
    static constexpr auto put = store;
    static constexpr long kTogether = 2, kStrip = 2 * kSide, kStrips = 1, kPanel = 2 * kSide, kDeep = 256, kTall = 128;  // 32 KiB of a panel at once

    struct Ready {  // this thread's tiles
        RL_TILES Ready() { _tile_loadconfig(&kShapes); }
        RL_TILES ~Ready() { _tile_release(); }
    };

    struct ReadyFor {
        RL_TILES explicit ReadyFor(long pairs) { _tile_loadconfig(&kAllShapes.of[pairs]); }
        RL_TILES ~ReadyFor() { _tile_release(); }
    };

    static long pairs(long steps) { return ceil_div(steps, 2 * kSide) * kSide; }
    static void left(Vectors x, uint32_t *to) { pack(x, true, to); }
    static void right(Vectors x, uint32_t *to) { pack(x, false, to); }

    // to (pairs / 16, 2, 16, 16).
    static void pack(Vectors x, bool by_vector, uint32_t *to) {
        for (long k = 0; k < pairs(x.steps); k += kSide)
            for (long half = 0; half < 2; ++half, to += kTile) pack_tile(x, half * kSide, k, by_vector, to);
    }

    // sums (32, 32) = or += a strip times a panel; of 16 rows and fewer the upper half alone.
    RL_TILES static __attribute__((noinline)) void tile(const uint32_t *a, const uint32_t *b, long pairs, long rows, long, float *sums, long pitch,
                                                         bool add) {
        constexpr long kRow = 64;  // bytes
        const bool both = rows > kSide;
        const long row = 4 * pitch;
        float *lower = sums + kSide * pitch;
        if (add) {
            _tile_loadd(0, sums, row);
            _tile_loadd(1, sums + kSide, row);
            _tile_loadd(2, lower, row);
            _tile_loadd(3, lower + kSide, row);
        } else {
            _tile_zero(0);
            _tile_zero(1);
            _tile_zero(2);
            _tile_zero(3);
        }
        for (long k = 0; k < pairs; k += kSide, a += 2 * kTile, b += 2 * kTile) {
            _tile_loadd(6, b, kRow);
            _tile_loadd(4, a, kRow);
            _tile_dpbf16ps(0, 4, 6);
            _tile_loadd(7, b + kTile, kRow);
            _tile_dpbf16ps(1, 4, 7);
            if (!both) continue;
            _tile_loadd(5, a + kTile, kRow);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
        _tile_stored(0, sums, row);
        _tile_stored(1, sums + kSide, row);
        if (!both) return;
        _tile_stored(2, lower, row);
        _tile_stored(3, lower + kSide, row);
    }

    // sums (32, 32) = or += those of `count` terms (see conv_pairs.h); the lower and the right half where they are wanted.
    RL_TILES static __attribute__((noinline)) void block(const void *a_, const void *b_, const Term *terms, long count, Strides s, long, bool lower,
                                                          bool right, bool add, float *sums) {
        constexpr long kRow = 4 * kSquare;
        const auto *a = static_cast<const char *>(a_), *b = static_cast<const char *>(b_);
        float *below = sums + kSide * kSquare;
        if (add) {
            _tile_loadd(0, sums, kRow);
            _tile_loadd(1, sums + kSide, kRow);
            _tile_loadd(2, below, kRow);
            _tile_loadd(3, below + kSide, kRow);
        } else {
            _tile_zero(0);
            _tile_zero(1);
            _tile_zero(2);
            _tile_zero(3);
        }
        for (long i = 0; i < count; ++i) {
            const char *left = a + terms[i].a, *top = b + terms[i].b;
            _tile_loadd(4, left, s.a_row);
            _tile_loadd(6, top, s.b_row);
            _tile_dpbf16ps(0, 4, 6);
            if (right) {
                _tile_loadd(7, top + s.b_next, s.b_row);
                _tile_dpbf16ps(1, 4, 7);
            }
            if (!lower) continue;
            _tile_loadd(5, left + s.a_next, s.a_row);
            _tile_dpbf16ps(2, 5, 6);
            if (right) _tile_dpbf16ps(3, 5, 7);
        }
        _tile_stored(0, sums, kRow);
        _tile_stored(1, sums + kSide, kRow);
        _tile_stored(2, below, kRow);
        _tile_stored(3, below + kSide, kRow);
    }
};

}  // namespace rl
