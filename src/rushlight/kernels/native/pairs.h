// Products of 16-bit matrices with sums in float32, rounded once: what the ways of multiplying have in common.
//
// Of bfloat16 a pair of neighbouring steps of the sum is one 32-bit number, and one instruction multiplies and adds both; of float16 a
// step is one of float32.  The right
// factor is packed into panels of columns, rows of the left one into strips; the sums of a strip times a panel stay in
// registers (after Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008).  An engine says how
// wide both are, how they are packed and multiplied.
#pragma once
#include <immintrin.h>

#include "gemm.h"

#define RL_WIDE __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#define RL_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

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

    // Of each `some` steps from `first` on.
    Vectors between(long first, long some) const { return {data + first * (along ? pitch : 1), pitch, count, some, along}; }
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

// Numbers of 16 bits as they lie in memory: to float32 and back.
struct OfBfloat16 {
    RL_WIDE static __m512 wide(__m256i x) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16)); }
    RL_WIDE static __m256i narrow(__m512 x) { return rounded(x); }
};
struct OfFloat16 {
    RL_WIDE static __m512 wide(__m256i x) { return _mm512_cvtph_ps(x); }
    RL_WIDE static __m256i narrow(__m512 x) { return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT); }
};

// Up to 16 of them in float32, 0 where there are none.
template <class Number> RL_WIDE inline __m512 some_of(const uint16_t *x, __mmask16 mask) {
    return Number::wide(_mm256_maskz_loadu_epi16(mask, x));
}

// Rows of sums, rounded.  What multiplies bfloat16 makes 0 of subnormals already: no sum is one.
RL_BF16 inline void store(const float *sums, long pitch, long rows, long columns, uint16_t *to, long to_pitch) {
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

// The same with `bias` (columns) added to each, if there is one.
template <class Number>
RL_WIDE void store_more(const float *sums, long pitch, const uint16_t *bias, long rows, long columns, uint16_t *to, long to_pitch) {
    for (long c = 0; c < columns; c += 16) {
        const __mmask16 mask = first_of(columns - c);
        const __m512 more = bias ? some_of<Number>(bias + c, mask) : _mm512_setzero_ps();
        for (long r = 0; r < rows; ++r) {
            const __m512 x = _mm512_loadu_ps(sums + r * pitch + c);
            _mm256_mask_storeu_epi16(to + r * to_pitch + c, mask, Number::narrow(bias ? _mm512_add_ps(x, more) : x));
        }
    }
}

// alpha times the sums, and beta times a matrix (rows, columns), whose rows lie as those of `to`, which it may be.
template <class Number>
RL_WIDE void store_mixed(const float *sums, long pitch, const uint16_t *more, float alpha, float beta, long rows, long columns,
                         uint16_t *to, long to_pitch) {
    const __m512 of_sums = _mm512_set1_ps(alpha), of_more = _mm512_set1_ps(beta);
    for (long c = 0; c < columns; c += 16) {
        const __mmask16 mask = first_of(columns - c);
        for (long r = 0; r < rows; ++r) {
            const __m512 wide = some_of<Number>(more + r * to_pitch + c, mask);
            const __m512 x = _mm512_mul_ps(_mm512_loadu_ps(sums + r * pitch + c), of_sums);
            _mm256_mask_storeu_epi16(to + r * to_pitch + c, mask, Number::narrow(_mm512_fmadd_ps(wide, of_more, x)));
        }
    }
}

// One of the four steps in which (16, 16) numbers are turned: vectors that lie kApart from each other exchange blocks.
template <int kApart> RL_WIDE inline __attribute__((always_inline)) void exchange(__m512i *v) {
    alignas(64) int32_t low[16], high[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {  // where bit kApart is set, the other vector's; 16 and above name the second
        low[i] = i & kApart ? 16 + i - kApart : i;
        high[i] = i & kApart ? 16 + i : i + kApart;
    }
    const __m512i lower = _mm512_load_si512(low), upper = _mm512_load_si512(high);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
        if (i & kApart) continue;
        const __m512i first = v[i], second = v[i + kApart];
        v[i] = _mm512_permutex2var_epi32(first, lower, second);
        v[i + kApart] = _mm512_permutex2var_epi32(first, upper, second);
    }
}

RL_WIDE inline __attribute__((always_inline)) void transpose(__m512i *v) { exchange<8>(v), exchange<4>(v), exchange<2>(v), exchange<1>(v); }

// read(row) of 16 rows, turned, in registers: put(column, its numbers) for the first `columns`.
template <class Read, class Put> RL_WIDE inline __attribute__((always_inline)) void turned(long columns, Read read, Put put) {
    __m512i v[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) v[i] = read(i);
    transpose(v);
#pragma GCC unroll 16
    for (int k = 0; k < 16; ++k)
        if (k < columns) put(k, v[k]);
}

// Where rows of 16 packed numbers go: to columns of a panel `width` wide, or to two strips of eight, `both` of which there are or the first.
struct ToPanel {
    uint32_t *to;
    long width;
    RL_WIDE void operator()(long row, __m512i x) const { _mm512_storeu_si512(to + row * width, x); }
};
struct ToStrips {
    uint32_t *to;
    long apart;
    bool both;
    RL_WIDE void operator()(long row, __m512i x) const {
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(to + row * 8), _mm512_castsi512_si256(x));
        if (both) _mm256_storeu_si256(reinterpret_cast<__m256i *>(to + apart + row * 8), _mm512_extracti64x4_epi64(x, 1));
    }
};

// Engine: Number, which it multiplies, and put, which rounds sums; kTogether steps in a pair; kStrip rows and kPanel columns of a tile; kStrips
// of strips packed at once; kDeep pairs of steps at once, whose panel stays in the first-level cache;
// kTall rows of the left factor at once; pairs(steps), as many as are packed; left(vectors, to) and right(vectors, to), which
// pack these strips, of which the last may be empty, and a panel; tile(strip, panel, pairs, rows and columns that count, sums, their pitch, add); `Ready`, alive while tiles are
// multiplied.

// Vectors as strips, or as panels: (strips, pairs, kStrip), (panels, pairs, kPanel).
template <class Engine> void pack_strips(const Vectors &x, uint32_t *to) {
    constexpr long kAtOnce = Engine::kStrips * Engine::kStrip;
    for (long i = 0; i < x.count; i += kAtOnce, to += kAtOnce * Engine::pairs(x.steps)) Engine::left(x.from(i, kAtOnce), to);
}

template <class Engine> void pack_panels(const Vectors &x, uint32_t *to) {
    const long size = Engine::kPanel * Engine::pairs(x.steps);
    for (long i = 0; i < x.count; i += Engine::kPanel, to += size) Engine::right(x.from(i, Engine::kPanel), to);
}

// sums (whole strips, kPanel) = or += `rows` rows of strips (each of `deep` pairs in memory) times one panel, over so many pairs; of the
// panel's columns the first `columns` count.
template <class Engine>
void multiply_panel(const uint32_t *left, long deep, long rows, const uint32_t *panel, long pairs, long columns, float *sums, long pitch,
                    bool add) {
    constexpr long kStrip = Engine::kStrip;
    for (long k = 0; k < pairs; k += Engine::kDeep)
        for (long i = 0; i < rows; i += kStrip)
            Engine::tile(left + i * deep + k * kStrip, panel + k * Engine::kPanel, std::min(Engine::kDeep, pairs - k), rows - i, columns,
                         sums + i * pitch, pitch, add || k > 0);
}

template <class Engine> struct Product {
    static constexpr long kStrip = Engine::kStrip, kPanel = Engine::kPanel;
    static constexpr long kChunk = 1024;  // pairs of rows of the left factor that are packed at once where these are few

    long rows, columns, steps;  // M, N, K
    const uint16_t *bias;       // (N), or nullptr
    const uint16_t *more;       // (B, M, N), or nullptr: result = alpha * product + beta * more
    float alpha, beta;
    bool wide;  // whether the result is float32

    long pairs() const { return Engine::pairs(steps); }
    long panels() const { return ceil_div(columns, kPanel); }

    Vectors right(Factor b) const { return {b.data, b.row, columns, steps, !b.turned}; }

    // Sums (count, kPanel) of some rows and a panel, rounded, to their place.
    void write(const float *sums, long first, long count, long panel, uint16_t *out, const uint16_t *beside) const {
        using Number = typename Engine::Number;
        const long width = std::min(kPanel, columns - panel * kPanel), at = first * columns + panel * kPanel;
        if (wide) {
            for (long r = 0; r < count; ++r) std::memcpy(reinterpret_cast<float *>(out) + at + r * columns, sums + r * kPanel, width * sizeof *sums);
            return;
        }
        uint16_t *to = out + at;
        if (beside) store_mixed<Number>(sums, kPanel, beside + at, alpha, beta, count, width, to, columns);
        else if (bias) store_more<Number>(sums, kPanel, bias + panel * kPanel, count, width, to, columns);
        else Engine::put(sums, kPanel, count, width, to, columns);
    }

    // Rows [first, first + count) and panels [begin, end) of out (rows, columns).  b: packed panels, from `begin` on.
    void part(Factor a, const uint32_t *b, long first, long count, long begin, long end, uint16_t *out, const uint16_t *beside) const {
        const long deep = pairs(), tall = ceil_div(count, kStrip) * kStrip;
        uint32_t *left = scratch<uint32_t, 1>(tall * deep);
        float *sums = scratch<float, 2>(tall * kPanel);
        pack_strips<Engine>(Vectors{a.data, a.row, rows, steps, a.turned}.from(first, count), left);
        for (long p = begin; p < end; ++p, b += deep * kPanel) {
            multiply_panel<Engine>(left, deep, count, b, deep, columns - p * kPanel, sums, kPanel, false);
            write(sums, first, count, p, out, beside);
        }
    }

    // One large product, on all threads.  packed: room for `some` panels, which are packed at a time.
    void on_all_threads(Factor a, Factor b, uint32_t *packed, long some, uint16_t *out, const uint16_t *beside) const {
        for (long first = 0; first < panels(); first += some)
            with_panels(a, b, packed, first, std::min(some, panels() - first), out, beside);
    }

    void with_panels(Factor a, Factor b, uint32_t *packed, long panel, long some, uint16_t *out, const uint16_t *beside) const {
        const long size = pairs() * kPanel;
        parallel_for(some, 1 + kGrain / (steps * kPanel), [&](long begin, long end) {
            pack_panels<Engine>(right(b).from((panel + begin) * kPanel, (end - begin) * kPanel), packed + begin * size);
        });
        const long blocks = ceil_div(rows, Engine::kTall), tall = ceil_div(ceil_div(rows, blocks), kStrip) * kStrip;
        const long cuts = std::min(some, ceil_div(threads() > 1 ? 2 * threads() : 1, blocks)), wide = ceil_div(some, cuts);
        parallel_tasks(blocks * cuts, rows * some * kPanel * steps, [&](long begin, long end) {
            typename Engine::Ready ready;
            for (long i = begin; i < end; ++i) {
                const long first = i / cuts * tall, from = i % cuts * wide;
                const long count = std::min(tall, rows - first), to = std::min(from + wide, some);
                if (count > 0 && from < to) part(a, packed + from * size, first, count, panel + from, panel + to, out, beside);
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

    // Panels [begin, end) of one of at most kTall rows: the right factor is packed some steps of a panel at a time, and multiplied at once.
    void low(Factor a, Factor b, long begin, long end, uint16_t *out, const uint16_t *beside) const {
        const long tall = ceil_div(rows, kStrip) * kStrip, unit = Engine::kTogether, chunk = kChunk * unit;
        uint32_t *left = scratch<uint32_t, 1>(tall * Engine::pairs(std::min(steps, chunk)));
        uint32_t *panel = scratch<uint32_t, 0>(Engine::kDeep * kPanel);
        float *sums = scratch<float, 2>(tall * kPanel * (end - begin));
        typename Engine::Ready ready;
        for (long k = 0; k < steps; k += chunk) {
            const long some = std::min(chunk, steps - k), deep = Engine::pairs(some);
            pack_strips<Engine>(Vectors{a.data, a.row, rows, steps, a.turned}.between(k, some), left);
            for (long p = begin; p < end; ++p) {
                const Vectors x = right(b).from(p * kPanel, kPanel).between(k, some);
                for (long d = 0; d < deep; d += Engine::kDeep) {
                    const long here = std::min(Engine::kDeep, deep - d);
                    Engine::right(x.between(d * unit, std::min(here * unit, some - d * unit)), panel);
                    for (long i = 0; i < rows; i += kStrip)
                        Engine::tile(left + i * deep + d * kStrip, panel, here, rows - i, x.count, sums + ((p - begin) * tall + i) * kPanel,
                                     kPanel, k + d > 0);
                }
            }
        }
        for (long p = begin; p < end; ++p) write(sums + (p - begin) * tall * kPanel, 0, rows, p, out, beside);
    }
};

// a (B, M, K), or (B, K, M) if turned; b (B, K, N), or (B, N, K) if turned; row (N) or None; more (B, M, N) or None; out (B, M, N), of 16 bits or
// float32, to which nothing is added; packed: room for
// `some` panels of a right factor, and 16 numbers for its alignment, if it is shared among threads, else None.
template <class Engine, class Out = uint16_t>
void multiply_all(const char *name, Array *a_, Array *b_, Array *row_, Array *more_, Array *out_, Array *packed_, long some, bool a_turned,
                  bool b_turned, long batch, long rows, long steps, long columns, double alpha, double beta) {
    Call call(name);
    auto a = call.rows<const uint16_t>("left", a_, 1, batch, a_turned ? steps : rows, a_turned ? rows : steps);
    auto b = call.rows<const uint16_t>("right", b_, 1, batch, b_turned ? columns : steps, b_turned ? steps : columns);
    const uint16_t *row = call.maybe_in<uint16_t>("row", row_, columns);
    const uint16_t *more = call.maybe_in<uint16_t>("added", more_, batch, rows, columns);
    constexpr bool kWide = sizeof(Out) == sizeof(float);
    auto *out = reinterpret_cast<uint16_t *>(call.out<Out>("out", out_, batch, rows, columns));
    call.expect(!kWide || (!row && !more), "nothing that is added");
    const Product<Engine> product{rows, columns, steps, row, more, (float)alpha, (float)beta, kWide};
    uint32_t *packed = call.maybe_out<uint32_t>("packed", packed_, 16 + some * product.pairs() * Engine::kPanel);
    call.expect(!packed || some > 0, "panels");
    call.expect(steps > 0 && rows > 0 && columns > 0 && a.row < (1L << 26) && b.row < (1L << 26), "sizes of a product");
    const auto result = [&](long i) { return out + i * rows * columns * (kWide ? 2 : 1); };
    const auto beside = [&](long i) { return more ? more + i * rows * columns : nullptr; };
    call.run([&] {
        if (rows <= Engine::kTall) {
            const long cuts = std::min(product.panels(), std::max(ceil_div(2 * threads(), batch), ceil_div(product.panels(), 10)));
            const long wide = ceil_div(product.panels(), cuts);
            parallel_tasks(batch * cuts, batch * rows * columns * steps, [&](long begin, long end) {
                for (long n = begin; n < end; ++n) {
                    const long i = n / cuts, from = n % cuts * wide, to = std::min(from + wide, product.panels());
                    if (from < to) product.low(factor(a, i, a_turned), factor(b, i, b_turned), from, to, result(i), beside(i));
                }
            });
            return;
        }
        if (packed) {
            packed = reinterpret_cast<uint32_t *>(((uintptr_t)packed + 63) / 64 * 64);
            for (long i = 0; i < batch; ++i)
                product.on_all_threads(factor(a, i, a_turned), factor(b, i, b_turned), packed, some, result(i), beside(i));
            return;
        }
        parallel_tasks(batch, batch * rows * columns * steps, [&](long begin, long end) {
            for (long i = begin; i < end; ++i)
                product.here(factor(a, i, a_turned), factor(b, i, b_turned), result(i), beside(i));
        });
    });
}

}  // namespace rl
