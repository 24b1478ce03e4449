// Products of bfloat16 matrices with sums in float32, rounded once, on processors with AVX512-BF16.
//
// A pair of neighbouring steps of the sum is one 32-bit number, and one instruction multiplies and adds both.  The right
// factor is packed into panels of 48 columns, rows of the left one into strips of 8; a tile of 8 x 48 sums stays in
// registers (after Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008).  Compiled for every x86-64
// machine by compilers that know these instructions; the caller asks the processor first.
#if defined(__x86_64__) && (defined(__clang__) || __GNUC__ >= 10)
#include <immintrin.h>

#include "gemm.h"

#define RL_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

namespace rl {
namespace {

constexpr long kStrip = 8, kPanel = 48;  // rows and columns of a tile
constexpr long kDeep = 128;              // pairs of steps at once: 24 KiB of a panel, which stay in the first-level cache
constexpr long kTall = 96;               // rows of the left factor at once

// A factor: element (i, k) of the left one, (k, j) of the right one.  `turned`: memory runs along the other index.
struct Factor {
    const uint16_t *data;
    long row;  // elements between rows of memory
    bool turned;
};

RL_BF16 inline uint32_t pair(uint16_t low, uint16_t high) { return (uint32_t)low | (uint32_t)high << 16; }

// `count` numbers (up to 16) at two places, side by side in pairs.
RL_BF16 inline __m512i joined(const uint16_t *low, const uint16_t *high, __mmask16 mask) {
    __m512i first = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, low));
    if (!high) return first;
    return _mm512_or_si512(first, _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, high)), 16));
}

// Pairs of neighbours in `count` rows (up to 16): lane i has row i's.
RL_BF16 inline __m512i gathered(const uint16_t *from, __m512i rows, __mmask16 mask, bool whole) {
    if (whole) return _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), mask, rows, from, 2);
    alignas(64) int32_t at[16], found[16] = {};
    _mm512_store_si512(at, rows);
    for (int i = 0; i < 16; ++i)
        if (mask >> i & 1) found[i] = from[at[i]];
    return _mm512_load_si512(found);
}

// Columns [first, first + count) of a factor, count up to `width`, in pairs: to (pairs, width), a pair a number.
// `along`: whether memory runs along the columns.
RL_BF16 void pack(const uint16_t *data, long pitch, bool along, long first, long count, long steps, long width, uint32_t *to) {
    const long pairs = ceil_div(steps, 2);
    for (long c = 0; c < width; c += 16) {
        const long some = std::min(16L, width - c), there = std::max(0L, std::min(some, count - c));
        const __mmask16 store = (__mmask16)((1u << some) - 1), mask = (__mmask16)((1u << there) - 1);
        const uint16_t *from = data + (first + c) * (along ? 1 : pitch);
        const __m512i rows = _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                                                _mm512_set1_epi32((int)pitch));
        for (long k = 0; k < pairs; ++k) {
            const bool whole = 2 * k + 1 < steps;
            const uint16_t *low = from + 2 * k * (along ? pitch : 1);
            const __m512i found = along ? joined(low, whole ? low + pitch : nullptr, mask) : gathered(low, rows, mask, whole);
            _mm512_mask_storeu_epi32(to + k * width + c, store, found);
        }
    }
}

// sums (8, 48) = or += a strip of pairs (pairs, 8) times a panel of them (pairs, 48).
RL_BF16 __attribute__((noinline)) void tile16(const uint32_t *a, const uint32_t *b, long pairs, float *sums, bool add) {
    __m512 sum[kStrip][3];
#pragma GCC unroll 8
    for (int i = 0; i < kStrip; ++i)
#pragma GCC unroll 3
        for (int v = 0; v < 3; ++v) sum[i][v] = add ? _mm512_loadu_ps(sums + i * kPanel + v * 16) : _mm512_setzero_ps();
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
        for (int v = 0; v < 3; ++v) _mm512_storeu_ps(sums + i * kPanel + v * 16, sum[i][v]);
}

// To nearest, ties to even; NaN stays NaN.  In integers, since the instruction for it makes 0 of subnormals.
RL_BF16 inline __m256i rounded(__m512 x) {
    const __m512i bits = _mm512_castps_si512(x), odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    const __m512i high = _mm512_mask_or_epi32(up, nan, bits, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(high, 16));
}

// A row of sums, with `bias` (or nullptr) added.
RL_BF16 inline void store(const float *sums, const uint16_t *bias, long columns, uint16_t *to) {
    for (long c = 0; c < columns; c += 16) {
        const __mmask16 mask = (__mmask16)((1u << std::min(16L, columns - c)) - 1);
        __m512 x = _mm512_loadu_ps(sums + c);
        if (bias) {
            const __m512i wide = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, bias + c)), 16);
            x = _mm512_add_ps(x, _mm512_castsi512_ps(wide));
        }
        _mm256_mask_storeu_epi16(to + c, mask, rounded(x));
    }
}

struct Product {
    long rows, columns, steps;  // M, N, K
    const uint16_t *bias;       // (N), or nullptr

    long pairs() const { return ceil_div(steps, 2); }
    long panels() const { return ceil_div(columns, kPanel); }

    void pack_panel(Factor b, long p, uint32_t *packed) const {
        pack(b.data, b.row, !b.turned, p * kPanel, columns - p * kPanel, steps, kPanel, packed + p * pairs() * kPanel);
    }

    // Rows [first, first + count) and panels [begin, end) of out (rows, columns).
    void part(Factor a, const uint32_t *b, long first, long count, long begin, long end, uint16_t *out) const {
        const long deep = pairs(), strips = ceil_div(count, kStrip);
        uint32_t *left = scratch<uint32_t, 1>(strips * kStrip * deep);
        float *sums = scratch<float, 2>(strips * kStrip * kPanel);
        for (long s = 0; s < strips; ++s)
            pack(a.data, a.row, a.turned, first + s * kStrip, count - s * kStrip, steps, kStrip, left + s * kStrip * deep);
        for (long p = begin; p < end; ++p) {
            const uint32_t *panel = b + p * deep * kPanel;
            for (long k = 0; k < deep; k += kDeep)
                for (long s = 0; s < strips; ++s)
                    tile16(left + (s * deep + k) * kStrip, panel + k * kPanel, std::min(kDeep, deep - k), sums + s * kStrip * kPanel, k > 0);
            const long width = std::min(kPanel, columns - p * kPanel);
            for (long r = 0; r < count; ++r)
                store(sums + r * kPanel, bias ? bias + p * kPanel : nullptr, width, out + (first + r) * columns + p * kPanel);
        }
    }

    // One large product, on all threads.  packed: room for all panels.
    void on_all_threads(Factor a, Factor b, uint32_t *packed, uint16_t *out) const {
        parallel_for(panels(), 1 + kGrain / (steps * kPanel), [&](long begin, long end) {
            for (long p = begin; p < end; ++p) pack_panel(b, p, packed);
        });
        const long blocks = ceil_div(rows, kTall), tall = ceil_div(ceil_div(rows, blocks), kStrip) * kStrip;
        const long cuts = std::min(panels(), ceil_div(4 * threads(), blocks)), wide = ceil_div(panels(), cuts);
        const long work = tall * wide * kPanel * steps;
        parallel_for(blocks * cuts, 1 + 16 * kGrain / work, [&](long begin, long end) {
            for (long i = begin; i < end; ++i) {
                const long first = i / cuts * tall, from = i % cuts * wide;
                const long count = std::min(tall, rows - first), to = std::min(from + wide, panels());
                if (count > 0 && from < to) part(a, packed, first, count, from, to, out);
            }
        });
    }

    // A small one on this thread.
    void here(Factor a, Factor b, uint16_t *out) const {
        uint32_t *packed = scratch<uint32_t, 0>(panels() * pairs() * kPanel);
        for (long p = 0; p < panels(); ++p) pack_panel(b, p, packed);
        for (long first = 0; first < rows; first += kTall) part(a, packed, first, std::min(kTall, rows - first), 0, panels(), out);
    }
};

inline Factor factor(Place<const uint16_t> at, long i, bool turned) { return {at.at(0, i).data, at.row, turned}; }

}  // namespace
}  // namespace rl

// a (B, M, K), or (B, K, M) if turned; b (B, K, N), or (B, N, K) if turned; row (N) or None; out (B, M, N); packed: room for
// the panels of one right factor if it is shared among threads, else None.
RL_EXPORT void rl_product_bf16(Array *a_, Array *b_, Array *row_, Array *out_, Array *packed_, int a_turned, int b_turned,
                               long batch, long rows, long steps, long columns) {
    rl::Call call("product");
    auto a = call.rows<const uint16_t>("left", a_, 1, batch, a_turned ? steps : rows, a_turned ? rows : steps);
    auto b = call.rows<const uint16_t>("right", b_, 1, batch, b_turned ? columns : steps, b_turned ? steps : columns);
    const uint16_t *row = call.maybe_in<uint16_t>("row", row_, columns);
    uint16_t *out = call.out<uint16_t>("out", out_, batch, rows, columns);
    const rl::Product product{rows, columns, steps, row};
    uint32_t *packed = call.maybe_out<uint32_t>("packed", packed_, product.panels(), product.pairs(), rl::kPanel);
    call.expect(steps > 0 && rows > 0 && columns > 0 && a.row < (1L << 26) && b.row < (1L << 26), "sizes of a product");
    call.run([&] {
        if (packed) {
            for (long i = 0; i < batch; ++i)
                product.on_all_threads(rl::factor(a, i, a_turned), rl::factor(b, i, b_turned), packed, out + i * rows * columns);
            return;
        }
        rl::parallel_for(batch, 1 + 16 * rl::kGrain / (rows * columns * steps), [&](long begin, long end) {
            for (long i = begin; i < end; ++i)
                product.here(rl::factor(a, i, a_turned), rl::factor(b, i, b_turned), out + i * rows * columns);
        });
    });
}
#endif
