// float16 and bfloat16 to float32 and back, to nearest, ties to even; their sums, products and quotients, in float32 and rounded.
// Arrays come as unsigned numbers of 16 bits; the output may be an input.
#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "common.h"

namespace rl {
namespace {

constexpr long kMany = 4 * kGrain;

inline float from_bf16(uint16_t x) {
    const uint32_t wide = (uint32_t)x << 16;
    float out;
    std::memcpy(&out, &wide, 4);
    return out;
}

inline uint16_t to_bf16(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    const uint32_t up = bits + 0x7fff + (bits >> 16 & 1), nan = bits | 0x400000;
    return (uint16_t)((x == x ? up : nan) >> 16);
}

void widen_bf16(const uint16_t *x, float *o, long n) {
#pragma omp simd
    for (long i = 0; i < n; ++i) o[i] = from_bf16(x[i]);
}

void narrow_bf16(const float *x, uint16_t *o, long n) {
#pragma omp simd
    for (long i = 0; i < n; ++i) o[i] = to_bf16(x[i]);
}

#if defined(__F16C__)
#define RL_F16 1
void widen_f16(const uint16_t *x, float *o, long n) {
    long i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(o + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(x + i))));
    for (; i < n; ++i) o[i] = _cvtsh_ss(x[i]);
}

void narrow_f16(const float *x, uint16_t *o, long n) {
    long i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128(reinterpret_cast<__m128i *>(o + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    for (; i < n; ++i) o[i] = _cvtss_sh(x[i], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#elif defined(__aarch64__)
#define RL_F16 1
void widen_f16(const uint16_t *x, float *o, long n) {
    for (long i = 0; i < n; ++i) {
        __fp16 half;
        std::memcpy(&half, x + i, 2);
        o[i] = half;
    }
}

void narrow_f16(const float *x, uint16_t *o, long n) {
    for (long i = 0; i < n; ++i) {
        const __fp16 half = (__fp16)x[i];
        std::memcpy(o + i, &half, 2);
    }
}
#endif

constexpr long kSome = 512;

// f of pairs, some at a time between conversions.
template <class W, class N, class F>
void joined(const uint16_t *x, const uint16_t *y, uint16_t *o, long n, W widen, N narrow, F f) {
    parallel_for(n, kGrain, [=](long begin, long end) {
        float a[kSome], b[kSome];
        for (long i = begin; i < end; i += kSome) {
            const long count = end - i < kSome ? end - i : kSome;
            widen(x + i, a, count);
            widen(y + i, b, count);
#pragma omp simd
            for (long k = 0; k < count; ++k) a[k] = f(a[k], b[k]);
            narrow(a, o + i, count);
        }
    });
}

}  // namespace
}  // namespace rl

#define PAIR(NAME, S, SIGN)                                                                                        \
    RL_EXPORT void rl_##NAME##_##S(Array *x_, Array *y_, Array *o_, long n) {                                      \
        rl::Call call(#NAME);                                                                                      \
        const uint16_t *x = call.pair_in<uint16_t>("input", x_, n), *y = call.pair_in<uint16_t>("other", y_, n);   \
        uint16_t *o = call.pair_out<uint16_t>("out", o_, n);                                                       \
        call.run([=] { rl::joined(x, y, o, n, rl::widen_##S, rl::narrow_##S, [](float a, float b) { return a SIGN b; }); }); \
    }
#define PAIRS(S) PAIR(add, S, +) PAIR(subtract, S, -) PAIR(multiply, S, *) PAIR(divide, S, /)

#define BETWEEN(S)                                                                                       \
    RL_EXPORT void rl_widen_##S(Array *x_, Array *o_, long n) {                                          \
        rl::Call call("widen");                                                                          \
        const uint16_t *x = call.pair_in<uint16_t>("input", x_, n);                                      \
        float *o = call.pair_out<float>("out", o_, n);                                                   \
        call.run([=] {                                                                                   \
            rl::parallel_for(n, rl::kMany, [=](long b, long e) { rl::widen_##S(x + b, o + b, e - b); });  \
        });                                                                                              \
    }                                                                                                    \
    RL_EXPORT void rl_narrow_##S(Array *x_, Array *o_, long n) {                                         \
        rl::Call call("narrow");                                                                         \
        const float *x = call.pair_in<float>("input", x_, n);                                            \
        uint16_t *o = call.pair_out<uint16_t>("out", o_, n);                                             \
        call.run([=] {                                                                                   \
            rl::parallel_for(n, rl::kMany, [=](long b, long e) { rl::narrow_##S(x + b, o + b, e - b); }); \
        });                                                                                              \
    }
BETWEEN(bf16)
PAIRS(bf16)
#ifdef RL_F16
BETWEEN(f16)
PAIRS(f16)
#endif
