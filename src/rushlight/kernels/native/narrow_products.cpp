// Products of 16-bit matrices one of which has few rows, or columns: the other is read once, as it lies, and made float32 in registers.
#include <algorithm>

#include "gemm.h"
#include "sixteen.h"

namespace rl {
namespace {
#if defined(RL_SIXTEEN)

using Lanes = decltype(lanes((const float *)nullptr));
constexpr long L = kLanesOf16, kAtOnceRows = 8, kColumns = 256, kMost = 8;

// The first `n` numbers (less than L), 0 behind them.
template <class S> RL_INLINE Lanes first_lanes(const S *x, long n) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    const __m256i some = _mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1), x);
    S all[L];
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(all), some);
#else
    S all[L] = {};
    for (long i = 0; i < n; ++i) all[i] = x[i];
#endif
    return lanes(all);
}

RL_INLINE float sum_of(Lanes x) {
    float each[L];
    store_lanes(each, x);
    for (long width = L / 2; width > 0; width /= 2)
        for (long i = 0; i < width; ++i) each[i] += each[i + width];
    return each[0];
}

// The sum of products of two vectors.
template <class S> float dot(const S *x, const S *y, long steps) {
    constexpr long kSums = 4;  // which do not wait for each other
    Lanes sums[kSums] = {};
    long k = 0;
    for (; k + kSums * L <= steps; k += kSums * L)
#pragma GCC unroll 4
        for (long i = 0; i < kSums; ++i) sums[i] += lanes(x + k + i * L) * lanes(y + k + i * L);
    for (; k + L <= steps; k += L) sums[0] += lanes(x + k) * lanes(y + k);
    if (k < steps) sums[1] += first_lanes(x + k, steps - k) * first_lanes(y + k, steps - k);
    return sum_of((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// x (few, steps) float32 in rows of `pitch`, times vectors of one of two kinds; out: number (i, j) lies at i * row + j * column.
template <class S> struct Narrow {
    const S *y;
    long apart, steps, pitch;
    S *out;
    long row, column;
    const S *more;  // along the result's rows, or nullptr
    bool across;    // whether these are the other factor's

    void put(long i, long j, float x) const { out[i * row + j * column] = narrowed<S>(more ? x + widened(more[across ? i : j]) : x); }

    // Vectors `apart` from each other along whose steps memory runs.
    template <int R, int C> void dots(const float *x, long i, long j) const {
        Lanes sum[R][C] = {};
        const S *at[C];
        for (int c = 0; c < C; ++c) at[c] = y + (j + c) * apart;
        const auto add = [&](long k, auto read) {
            Lanes left[R];
#pragma GCC unroll 4
            for (int r = 0; r < R; ++r) left[r] = lanes(x + r * pitch + k);
#pragma GCC unroll 4
            for (int c = 0; c < C; ++c) {
                const Lanes right = read(at[c] + k);
#pragma GCC unroll 4
                for (int r = 0; r < R; ++r) sum[r][c] += left[r] * right;
            }
        };
        long k = 0;
        for (; k + L <= steps; k += L) add(k, [](const S *v) { return lanes(v); });
        const long rest = steps - k;
        if (rest) add(k, [=](const S *v) { return first_lanes(v, rest); });
        for (int r = 0; r < R; ++r)
            for (int c = 0; c < C; ++c) put(i + r, j + c, sum_of(sum[r][c]));
    }

    template <int R> void dots_of_rows(const float *x, long i, long from, long to) const {
        long j = from;
        for (; j + 4 <= to; j += 4) dots<R, 4>(x + i * pitch, i, j);
        for (; j < to; ++j) dots<R, 1>(x + i * pitch, i, j);
    }

    void all_dots(const float *x, long few, long from, long to) const {
        long i = 0;
        for (; i + 4 <= few; i += 4) dots_of_rows<4>(x, i, from, to);
        if (few - i == 3) dots_of_rows<3>(x, i, from, to);
        if (few - i == 2) dots_of_rows<2>(x, i, from, to);
        if (few - i == 1) dots_of_rows<1>(x, i, from, to);
    }

    // Some steps of vectors that lie side by side, `apart` from step to step, added to sums (few, kColumns): R steps at once.
    template <int R> void add_steps(const float *x, long few, long k, long from, long to, float *sums) const {
        const S *at = y + k * apart;
        for (long j = from; j < to; j += L) {
            const long some = to - j;
            Lanes v[R];
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) v[r] = some < L ? first_lanes(at + r * apart + j, some) : lanes(at + r * apart + j);
            for (long i = 0; i < few; ++i) {
                float *to_ = sums + i * kColumns + (j - from);
                const float *left = x + i * pitch + k;
                Lanes sum = lanes(to_);
#pragma GCC unroll 8
                for (int r = 0; r < R; ++r) sum += left[r] * v[r];
                store_lanes(to_, sum);
            }
        }
    }

    void all_sums(const float *x, long few, long from, long to) const {
        alignas(64) float sums[kMost * kColumns];
        for (long i = 0; i < few; ++i) std::fill_n(sums + i * kColumns, std::min(kColumns, ceil_div(to - from, L) * L), 0.0f);
        long k = 0;
        for (; k + kAtOnceRows <= steps; k += kAtOnceRows) add_steps<kAtOnceRows>(x, few, k, from, to, sums);
        for (; k < steps; ++k) add_steps<1>(x, few, k, from, to, sums);
        for (long i = 0; i < few; ++i) {
            if (column == 1 && !more) narrow(sums + i * kColumns, out + i * row + from, to - from);
            else
                for (long j = from; j < to; ++j) put(i, j, sums[i * kColumns + (j - from)]);
        }
    }
};

// One row of a product whose sums have kMost steps at most: x, as many numbers, times rows of y in float32, `pitch` apart.
template <class S, int K> void short_sums(const float *x, const float *y, long pitch, long columns, S *out) {
    Lanes left[K];
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k) left[k] = Lanes{} + x[k];
    float edge[L];
    for (long j = 0; j < columns; j += L) {
        Lanes sum = left[0] * lanes(y + j);
#pragma GCC unroll 8
        for (int k = 1; k < K; ++k) sum += left[k] * lanes(y + k * pitch + j);
        store_lanes(edge, sum);
        narrow(edge, out + j, std::min(L, columns - j));
    }
}

// x (few, steps), in float32 in rows of `pitch`.
template <class S> void widen_few(const S *x, long apart, bool turned, long few, long steps, float *to, long pitch) {
    for (long i = 0; i < few; ++i) {
        if (turned)
            for (long k = 0; k < steps; ++k) to[i * pitch + k] = widened(x[k * apart + i]);
        else
            widen(x + i * apart, to + i * pitch, steps);
        std::fill(to + i * pitch + steps, to + (i + 1) * pitch, 0.0f);
    }
}
#endif

// few (B, R, K), or (B, K, R) if turned; many (B, C, K), or (B, K, C) if turned; out (B, R, C), or (B, C, R) if across; more (the
// last of these), added to each row, or None.  Whether it was done.
template <class S>
long multiply_few_all(Array *few_, Array *many_, Array *more_, Array *out_, bool turned, bool many_turned, bool across, long batch, long few, long many, long steps) {
    Call call("product");
    auto x = call.rows<const uint16_t>("few", few_, 1, batch, turned ? steps : few, turned ? few : steps);
    auto y = call.rows<const uint16_t>("many", many_, 1, batch, many_turned ? steps : many, many_turned ? many : steps);
    const uint16_t *more = call.maybe_in<uint16_t>("row", more_, across ? few : many);
    uint16_t *out = call.out<uint16_t>("out", out_, batch, few, many);
#if defined(RL_SIXTEEN)
    call.expect(few > 0 && few <= kMost && many > 0 && steps > 0, "sizes of a product");
    const long pitch = ceil_div(steps, L) * L, blocks = ceil_div(many, kColumns);
    call.run([&] {
        if (few == 1 && many == 1 && !turned && !many_turned) {
            parallel_for(batch, row_grain(steps), [&](long begin, long end) {
                for (long n = begin; n < end; ++n) {
                    const float sum = dot(reinterpret_cast<const S *>(x.at(0, n).data), reinterpret_cast<const S *>(y.at(0, n).data), steps);
                    reinterpret_cast<S *>(out)[n] = narrowed<S>(more ? sum + widened(*reinterpret_cast<const S *>(more)) : sum);
                }
            });
            return;
        }
        parallel_tasks(batch * blocks, batch * few * many * steps, [&](long begin, long end) {
            float *wide = scratch<float, 0>(few * pitch);
            for (long n = begin, last = -1; n < end; ++n) {
                const long one = n / blocks, from = n % blocks * kColumns, to = std::min(many, from + kColumns);
                if (one != last) widen_few(reinterpret_cast<const S *>(x.at(0, one).data), x.row, turned, few, steps, wide, pitch);
                last = one;
                const Narrow<S> product{reinterpret_cast<const S *>(y.at(0, one).data), y.row, steps, pitch,
                                        reinterpret_cast<S *>(out) + one * few * many, across ? 1 : many, across ? few : 1,
                                        reinterpret_cast<const S *>(more), across};
                many_turned ? product.all_sums(wide, few, from, to) : product.all_dots(wide, few, from, to);
            }
        });
    });
    return 1;
#else
    return 0;
#endif
}

// left (B, M, K), or (B, K, M) if turned; right (B, K, N), or (B, N, K) if turned; out (B, M, N); K up to 4.  Whether it was done.
template <class S>
long multiply_short_all(Array *left_, Array *right_, Array *out_, bool turned, bool right_turned, long batch, long rows, long columns, long steps) {
    Call call("product");
    auto x = call.rows<const uint16_t>("left", left_, 1, batch, turned ? steps : rows, turned ? rows : steps);
    auto y = call.rows<const uint16_t>("right", right_, 1, batch, right_turned ? columns : steps, right_turned ? steps : columns);
    uint16_t *out = call.out<uint16_t>("out", out_, batch, rows, columns);
#if defined(RL_SIXTEEN)
    call.expect(rows > 0 && columns > 0 && steps > 0 && steps <= 4, "sizes of a product");
    const long pitch = ceil_div(columns, L) * L;
    call.run([&] {
        parallel_for(batch * rows, row_grain(columns), [&](long begin, long end) {
            float *wide = scratch<float, 0>(steps * pitch), here[4];
            for (long n = begin, last = -1; n < end; ++n) {
                const long one = n / rows, i = n % rows;
                if (one != last) widen_few(reinterpret_cast<const S *>(y.at(0, one).data), y.row, right_turned, steps, columns, wide, pitch);
                last = one;
                const auto *from = reinterpret_cast<const S *>(x.at(0, one).data);
                for (long k = 0; k < steps; ++k) here[k] = widened(turned ? from[k * x.row + i] : from[i * x.row + k]);
                S *to = reinterpret_cast<S *>(out) + n * columns;
                const auto act = steps == 1 ? short_sums<S, 1> : steps == 2 ? short_sums<S, 2> : steps == 3 ? short_sums<S, 3> : short_sums<S, 4>;
                act(here, wide, pitch, columns, to);
            }
        });
    });
    return 1;
#else
    return 0;
#endif
}

}  // namespace
}  // namespace rl

#define RL_FEW(T, S)                                                                                                            \
    RL_EXPORT long rl_product_of_few_##S(Array *few, Array *many, Array *more, Array *out, int turned, int many_turned, int across, \
                                         long batch, long rows, long columns, long steps) {                                     \
        return rl::multiply_few_all<T>(few, many, more, out, turned, many_turned, across, batch, rows, columns, steps);                   \
    }                                                                                                                           \
    RL_EXPORT long rl_product_of_short_##S(Array *left, Array *right, Array *out, int turned, int right_turned, long batch,     \
                                           long rows, long columns, long steps) {                                               \
        return rl::multiply_short_all<T>(left, right, out, turned, right_turned, batch, rows, columns, steps);                      \
    }
RL_FEW(rl::Bf16, bf16)
RL_FEW(rl::F16, f16)
