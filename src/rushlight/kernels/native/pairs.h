// Products of bfloat16 matrices with sums in float32, rounded once: what the ways of multiplying have in common.
//
// A pair of neighbouring steps of the sum is one 32-bit number, and one instruction multiplies and adds both.  The right
// factor is packed into panels of columns, rows of the left one into strips; the sums of a strip times a panel stay in
// registers (after Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008).  An engine says how
// wide both are, how they are packed and multiplied.
#pragma once
#include <immintrin.h>

#include "gemm.h"

#define RL_WIDE __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

namespace rl {

// A factor: element (i, k) of the left one, (k, j) of the right one.  `turned`: memory runs along the other index.
struct Factor {
    const uint16_t *data;
    long row;  // elements between rows of memory
    bool turned;
};

inline Factor factor(Place<const uint16_t> at, long i, bool turned) { return {at.at(0, i).data, at.row, turned}; }

// Some rows of the left factor, or columns of the right one: vectors over the steps of the sum.
struct Vectors {
    const uint16_t *data;
    long pitch, count, steps;
    bool along;  // whether memory runs along the vectors' index, not along the steps

    // `some` of them, or as many as there are, from `first` on.
    Vectors from(long first, long some) const {
        return {data + first * (along ? 1 : pitch), pitch, std::max(0L, std::min(some, count - first)), steps, along};
    }
};

// `count` numbers (up to 16) at two places, side by side in pairs.
RL_WIDE inline __m512i joined(const uint16_t *low, const uint16_t *high, __mmask16 mask) {
    __m512i first = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, low));
    if (!high) return first;
    return _mm512_or_si512(first, _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, high)), 16));
}

// To nearest, ties to even; NaN stays NaN.  In integers, since the instruction for it makes 0 of subnormals.
RL_WIDE inline __m256i rounded(__m512 x) {
    const __m512i bits = _mm512_castps_si512(x), odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    const __m512i high = _mm512_mask_or_epi32(up, nan, bits, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(high, 16));
}

inline __mmask16 first_of(long count) { return (__mmask16)((1u << std::min(16L, count)) - 1); }

// Rows of sums, rounded.  What multiplies makes 0 of subnormals already: no sum is one.
RL_WIDE inline void store(const float *sums, long pitch, long rows, long columns, uint16_t *to, long to_pitch) {
    for (long r = 0; r < rows; ++r, sums += pitch, to += to_pitch) {
        long c = 0;
        for (; c + 32 <= columns; c += 32) {
            const __m512bh both = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(sums + c + 16), _mm512_loadu_ps(sums + c));
            _mm512_storeu_si512(to + c, (__m512i)both);
        }
        for (; c < columns; c += 16)
            _mm256_mask_storeu_epi16(to + c, first_of(columns - c), (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(sums + c)));
    }
}

// The same with `bias` (columns) added to each.
RL_WIDE inline void store_more(const float *sums, long pitch, const uint16_t *bias, long rows, long columns, uint16_t *to, long to_pitch) {
    for (long c = 0; c < columns; c += 16) {
        const __mmask16 mask = first_of(columns - c);
        const __m512i wide = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, bias + c)), 16);
        for (long r = 0; r < rows; ++r) {
            const __m512 x = _mm512_add_ps(_mm512_loadu_ps(sums + r * pitch + c), _mm512_castsi512_ps(wide));
            _mm256_mask_storeu_epi16(to + r * to_pitch + c, mask, rounded(x));
        }
    }
}

// alpha times the sums, and beta times a matrix (rows, columns), whose rows lie as those of `to`, which it may be.
RL_WIDE inline void store_mixed(const float *sums, long pitch, const uint16_t *more, float alpha, float beta, long rows, long columns,
                                uint16_t *to, long to_pitch) {
    const __m512 of_sums = _mm512_set1_ps(alpha), of_more = _mm512_set1_ps(beta);
    for (long c = 0; c < columns; c += 16) {
        const __mmask16 mask = first_of(columns - c);
        for (long r = 0; r < rows; ++r) {
            const __m512i wide = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, more + r * to_pitch + c)), 16);
            const __m512 x = _mm512_mul_ps(_mm512_loadu_ps(sums + r * pitch + c), of_sums);
            _mm256_mask_storeu_epi16(to + r * to_pitch + c, mask, rounded(_mm512_fmadd_ps(_mm512_castsi512_ps(wide), of_more, x)));
        }
    }
}

// Engine: kStrip rows and kPanel columns of a tile; kDeep pairs of steps at once, whose panel stays in the first-level cache;
// kTall rows of the left factor at once; pairs(steps), as many as are packed; left(vectors, to) and right(vectors, to), which
// pack a strip and a panel; tile(strip, panel, pairs, rows that count, sums, their pitch, add); `Ready`, alive while tiles are
// multiplied.

// Vectors as strips, or as panels: (strips, pairs, kStrip), (panels, pairs, kPanel).
template <class Engine> void pack_strips(const Vectors &x, uint32_t *to) {
    const long size = Engine::kStrip * Engine::pairs(x.steps);
    for (long i = 0; i < x.count; i += Engine::kStrip, to += size) Engine::left(x.from(i, Engine::kStrip), to);
}

template <class Engine> void pack_panels(const Vectors &x, uint32_t *to) {
    const long size = Engine::kPanel * Engine::pairs(x.steps);
    for (long i = 0; i < x.count; i += Engine::kPanel, to += size) Engine::right(x.from(i, Engine::kPanel), to);
}

// sums (whole strips, kPanel) = or += `rows` rows of strips (each of `deep` pairs in memory) times one panel, over so many pairs.
template <class Engine>
void multiply_panel(const uint32_t *left, long deep, long rows, const uint32_t *panel, long pairs, float *sums, long pitch, bool add) {
    constexpr long kStrip = Engine::kStrip;
    for (long k = 0; k < pairs; k += Engine::kDeep)
        for (long i = 0; i < rows; i += kStrip)
            Engine::tile(left + i * deep + k * kStrip, panel + k * Engine::kPanel, std::min(Engine::kDeep, pairs - k), rows - i,
                         sums + i * pitch, pitch, add || k > 0);
}

template <class Engine> struct Product {
    static constexpr long kStrip = Engine::kStrip, kPanel = Engine::kPanel;

    long rows, columns, steps;  // M, N, K
    const uint16_t *bias;       // (N), or nullptr
    const uint16_t *more;       // (B, M, N), or nullptr: result = alpha * product + beta * more
    float alpha, beta;

    long pairs() const { return Engine::pairs(steps); }
    long panels() const { return ceil_div(columns, kPanel); }

    Vectors right(Factor b) const { return {b.data, b.row, columns, steps, !b.turned}; }

    // Rows [first, first + count) and panels [begin, end) of out (rows, columns).
    void part(Factor a, const uint32_t *b, long first, long count, long begin, long end, uint16_t *out, const uint16_t *beside) const {
        const long deep = pairs(), tall = ceil_div(count, kStrip) * kStrip;
        uint32_t *left = scratch<uint32_t, 1>(tall * deep);
        float *sums = scratch<float, 2>(tall * kPanel);
        pack_strips<Engine>(Vectors{a.data, a.row, rows, steps, a.turned}.from(first, count), left);
        for (long p = begin; p < end; ++p) {
            multiply_panel<Engine>(left, deep, count, b + p * deep * kPanel, deep, sums, kPanel, false);
            const long width = std::min(kPanel, columns - p * kPanel);
            const long at = first * columns + p * kPanel;
            uint16_t *to = out + at;
            if (beside) store_mixed(sums, kPanel, beside + at, alpha, beta, count, width, to, columns);
            else if (bias) store_more(sums, kPanel, bias + p * kPanel, count, width, to, columns);
            else store(sums, kPanel, count, width, to, columns);
        }
    }

    // One large product, on all threads.  packed: room for all panels.
    void on_all_threads(Factor a, Factor b, uint32_t *packed, uint16_t *out, const uint16_t *beside) const {
        parallel_for(panels(), 1 + kGrain / (steps * kPanel), [&](long begin, long end) {
            pack_panels<Engine>(right(b).from(begin * kPanel, (end - begin) * kPanel), packed + begin * kPanel * pairs());
        });
        const long blocks = ceil_div(rows, Engine::kTall), tall = ceil_div(ceil_div(rows, blocks), kStrip) * kStrip;
        const long cuts = std::min(panels(), ceil_div(4 * threads(), blocks)), wide = ceil_div(panels(), cuts);
        const long work = tall * wide * kPanel * steps;
        parallel_for(blocks * cuts, 1 + 16 * kGrain / work, [&](long begin, long end) {
            typename Engine::Ready ready;
            for (long i = begin; i < end; ++i) {
                const long first = i / cuts * tall, from = i % cuts * wide;
                const long count = std::min(tall, rows - first), to = std::min(from + wide, panels());
                if (count > 0 && from < to) part(a, packed, first, count, from, to, out, beside);
            }
        });
    }

    // A small one on this thread.
    void here(Factor a, Factor b, uint16_t *out, const uint16_t *beside) const {
        uint32_t *packed = scratch<uint32_t, 0>(panels() * pairs() * kPanel);
        pack_panels<Engine>(right(b), packed);
        typename Engine::Ready ready;
        for (long first = 0; first < rows; first += Engine::kTall)
            part(a, packed, first, std::min(Engine::kTall, rows - first), 0, panels(), out, beside);
    }
};

// a (B, M, K), or (B, K, M) if turned; b (B, K, N), or (B, N, K) if turned; row (N) or None; more (B, M, N) or None; out (B, M, N); packed: room for
// the panels of one right factor, and 16 numbers for its alignment, if it is shared among threads, else None.
template <class Engine>
void multiply_all(const char *name, Array *a_, Array *b_, Array *row_, Array *more_, Array *out_, Array *packed_, bool a_turned, bool b_turned,
                  long batch, long rows, long steps, long columns, double alpha, double beta) {
    Call call(name);
    auto a = call.rows<const uint16_t>("left", a_, 1, batch, a_turned ? steps : rows, a_turned ? rows : steps);
    auto b = call.rows<const uint16_t>("right", b_, 1, batch, b_turned ? columns : steps, b_turned ? steps : columns);
    const uint16_t *row = call.maybe_in<uint16_t>("row", row_, columns);
    const uint16_t *more = call.maybe_in<uint16_t>("added", more_, batch, rows, columns);
    uint16_t *out = call.out<uint16_t>("out", out_, batch, rows, columns);
    const Product<Engine> product{rows, columns, steps, row, more, (float)alpha, (float)beta};
    uint32_t *packed = call.maybe_out<uint32_t>("packed", packed_, 16 + product.panels() * product.pairs() * Engine::kPanel);
    call.expect(steps > 0 && rows > 0 && columns > 0 && a.row < (1L << 26) && b.row < (1L << 26), "sizes of a product");
    const auto beside = [&](long i) { return more ? more + i * rows * columns : nullptr; };
    call.run([&] {
        if (packed) {
            packed = reinterpret_cast<uint32_t *>(((uintptr_t)packed + 63) / 64 * 64);
            for (long i = 0; i < batch; ++i)
                product.on_all_threads(factor(a, i, a_turned), factor(b, i, b_turned), packed, out + i * rows * columns, beside(i));
            return;
        }
        parallel_for(batch, 1 + 16 * kGrain / (rows * columns * steps), [&](long begin, long end) {
            for (long i = begin; i < end; ++i)
                product.here(factor(a, i, a_turned), factor(b, i, b_turned), out + i * rows * columns, beside(i));
        });
    });
}

}  // namespace rl
