// Products of float16 matrices, on processors with AVX-512: factors become float32 where they are packed, sums are rounded once.
#if defined(__x86_64__) && (defined(__clang__) || __GNUC__ >= 10)
#include "pairs.h"

namespace rl {
namespace {

// Up to 16 vectors in float32, a row of 16 numbers for each step.
template <class To> RL_WIDE void pack_wide(const Vectors &x, To to) {
    if (x.along) {
        const __mmask16 mask = first_of(x.count);
        for (long k = 0; k < x.steps; ++k) to(k, _mm512_castps_si512(some_of<OfFloat16>(x.data + k * x.pitch, mask)));
        return;
    }
    for (long step = 0; step < x.steps; step += 16) {
        const long some = std::min(16L, x.steps - step);
        const uint16_t *from = x.data + step;
        turned(
            some,
            [&](int i) RL_WIDE {
                const __mmask16 mask = i < x.count ? first_of(some) : 0;
                return _mm512_castps_si512(some_of<OfFloat16>(from + (i < x.count ? i : 0) * x.pitch, mask));
            },
            [&](int k, __m512i row) RL_WIDE { to(step + k, row); });
    }
}

struct Singles {
    using Number = OfFloat16;
    static constexpr long kTogether = 1, kStrip = 8, kStrips = 2, kPanel = 48, kDeep = 128, kTall = 96;  // 24 KiB of a panel at once
    struct Ready {
        ~Ready() {}
    };

    static long pairs(long steps) { return steps; }
    static void left(const Vectors &x, uint32_t *to) { pack_wide(x, ToStrips{to, x.steps * kStrip, x.count > kStrip}); }
    static void right(const Vectors &x, uint32_t *to) {
        for (long c = 0; c < x.count; c += 16) pack_wide(x.from(c, 16), ToPanel{to + c, kPanel});
    }
    static void put(const float *sums, long pitch, long rows, long columns, uint16_t *to, long to_pitch) {
        store_more<Number>(sums, pitch, nullptr, rows, columns, to, to_pitch);
    }

    // sums (8, 48) = or += a strip (steps, 8) times a panel (steps, 48), of which NV vectors count.
    template <int NV>
    RL_WIDE static __attribute__((noinline)) void vectors(const uint32_t *a_, const uint32_t *b_, long steps, float *sums, long pitch, bool add) {
        const auto *a = reinterpret_cast<const float *>(a_), *b = reinterpret_cast<const float *>(b_);
        __m512 sum[kStrip][NV];
#pragma GCC unroll 8
        for (int i = 0; i < kStrip; ++i)
#pragma GCC unroll 3
            for (int v = 0; v < NV; ++v) sum[i][v] = add ? _mm512_loadu_ps(sums + i * pitch + v * 16) : _mm512_setzero_ps();
        for (long k = 0; k < steps; ++k) {
            __m512 right[NV];
#pragma GCC unroll 3
            for (int v = 0; v < NV; ++v) right[v] = _mm512_loadu_ps(b + k * kPanel + v * 16);
#pragma GCC unroll 8
            for (int i = 0; i < kStrip; ++i) {
                const __m512 left = _mm512_set1_ps(a[k * kStrip + i]);
#pragma GCC unroll 3
                for (int v = 0; v < NV; ++v) sum[i][v] = _mm512_fmadd_ps(left, right[v], sum[i][v]);
            }
        }
#pragma GCC unroll 8
        for (int i = 0; i < kStrip; ++i)
#pragma GCC unroll 3
            for (int v = 0; v < NV; ++v) _mm512_storeu_ps(sums + i * pitch + v * 16, sum[i][v]);
    }

    static void tile(const uint32_t *a, const uint32_t *b, long steps, long, long columns, float *sums, long pitch, bool add) {
        const auto some = columns > 32 ? vectors<3> : columns > 16 ? vectors<2> : vectors<1>;
        some(a, b, steps, sums, pitch, add);
    }
};

}  // namespace
}  // namespace rl

RL_EXPORT void rl_product_f16(Array *a, Array *b, Array *row, Array *more, Array *out, Array *packed, long some, int a_turned, int b_turned,
                              long batch, long rows, long steps, long columns, double alpha, double beta) {
    rl::multiply_all<rl::Singles>("product", a, b, row, more, out, packed, some, a_turned, b_turned, batch, rows, steps, columns, alpha, beta);
}
RL_EXPORT void rl_product_wide_f16(Array *a, Array *b, Array *row, Array *more, Array *out, Array *packed, long some, int a_turned, int b_turned,
                              long batch, long rows, long steps, long columns, double alpha, double beta) {
    rl::multiply_all<rl::Singles, float>("product", a, b, row, more, out, packed, some, a_turned, b_turned, batch, rows, steps, columns, alpha, beta);
}
#endif
