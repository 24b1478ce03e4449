// Numbers of 16 bits, bfloat16 and float16: computed with in float32, rounded once (to nearest, ties to even) where they are written.
//
// Compilers make no SIMD code of float16's conversions, so that loops go over some numbers at a time between conversions of all of
// these, in the first-level cache: `turn` and `turn2` where numbers are written, `Part` where they are read.  Of float and double
// these are the plain loops.
#pragma once
#if defined(__F16C__)
#include <immintrin.h>
#endif
#include <type_traits>

#include "common.h"

namespace rl {

struct Bf16 {
    uint16_t bits;
};
struct F16 {
    uint16_t bits;
};
template <> struct Kind<Bf16> : Kind<uint16_t> {};
template <> struct Kind<F16> : Kind<uint16_t> {};

// What numbers are computed in, and there and back.
template <class T> struct Wide {
    typedef T type;
};
template <> struct Wide<Bf16> {
    typedef float type;
};
template <> struct Wide<F16> {
    typedef float type;
};
template <class T> using WideOf = typename Wide<T>::type;
template <class T> constexpr bool kPlain = std::is_same<T, WideOf<T>>::value;

RL_INLINE uint32_t bits_of(float x) {
    uint32_t out;
    std::memcpy(&out, &x, 4);
    return out;
}
RL_INLINE float of_bits(uint32_t x) {
    float out;
    std::memcpy(&out, &x, 4);
    return out;
}

RL_INLINE uint16_t widened(uint16_t x) { return x; }  // bits
RL_INLINE float widened(float x) { return x; }
RL_INLINE double widened(double x) { return x; }
RL_INLINE float widened(Bf16 x) { return of_bits((uint32_t)x.bits << 16); }
RL_INLINE float widened(F16 x) {
#if defined(__F16C__)
    return _cvtsh_ss(x.bits);
#elif defined(__aarch64__)
    __fp16 half;
    std::memcpy(&half, &x, 2);
    return half;
#else
    const uint32_t size = x.bits & 0x7fffu, sign = (x.bits & 0x8000u) << 16;
    const uint32_t normal = (size << 13) + ((size >= 0x7c00 ? 224u : 112u) << 23), small = bits_of((float)(int)size * 0x1p-24f);
    return of_bits((size < 0x400 ? small : normal) | sign);
#endif
}

template <class T> RL_INLINE T narrowed(WideOf<T> x) { return x; }
template <> RL_MEMBER Bf16 narrowed<Bf16>(float x) {
    const uint32_t bits = bits_of(x);
    const uint32_t up = bits + 0x7fff + (bits >> 16 & 1), nan = -(uint32_t)(x != x);  // without a branch, which is no SIMD code
    return {(uint16_t)(((up & ~nan) | ((bits | 0x400000) & nan)) >> 16)};
}
template <> RL_MEMBER F16 narrowed<F16>(float x) {
#if defined(__F16C__)
    return {(uint16_t)_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT)};
#elif defined(__aarch64__)
    const __fp16 half = (__fp16)x;
    F16 out;
    std::memcpy(&out, &half, 2);
    return out;
#else
    const uint32_t bits = bits_of(x), size = bits & 0x7fffffffu, odd = size >> 13 & 1;
    const uint32_t small = bits_of(of_bits(size) + 0.5f) - 0x3f000000u;  // what is added rounds to multiples of 2^-24
    const uint32_t normal = (size - 0x38000000u + 0xfffu + odd) >> 13;
    uint32_t out = size < 0x38800000u ? small : size < 0x477ff000u ? normal : 0x7c00u;
    out = size > 0x7f800000u ? 0x7e00u | (size >> 13 & 0x3ffu) : out;
    return {(uint16_t)(out | (bits >> 16 & 0x8000u))};
#endif
}

// A vector of float32 numbers, from as many in memory and back.
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__)
#define RL_SIXTEEN 1
typedef float Wide16 __attribute__((vector_size(64)));
constexpr long kLanesOf16 = 16;
RL_INLINE Wide16 lanes(const F16 *x) { return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(x))); }
RL_INLINE Wide16 lanes(const Bf16 *x) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(x));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(low), 16));
}
RL_INLINE Wide16 lanes(const float *x) { return _mm512_loadu_ps(x); }
RL_INLINE void store_lanes(float *o, Wide16 x) { _mm512_storeu_ps(o, x); }
// What rounds to bfloat16 when its lower half is cut off; NaN stays NaN.
RL_INLINE __m512i raised(Wide16 x) {
    const __m512i bits = _mm512_castps_si512(x), odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    return _mm512_mask_or_epi32(up, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), bits, _mm512_set1_epi32(0x400000));
}
RL_INLINE void put_lanes(Wide16 x, F16 *o) {
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(o), _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}
RL_INLINE void put_lanes(Wide16 x, Bf16 *o) {
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(o), _mm512_cvtepi32_epi16(_mm512_srli_epi32(raised(x), 16)));
}
// Two of them: their upper halves are taken by one instruction.
RL_INLINE void put_two(Wide16 x, Wide16 y, Bf16 *o) {
#if defined(__AVX512BF16__)
    // The processor's own conversion takes numbers below the normal ones for 0.
    constexpr int kSubnormal = 0x20;
    if (!(_mm512_fpclass_ps_mask(x, kSubnormal) | _mm512_fpclass_ps_mask(y, kSubnormal))) {
        const __m512bh found = _mm512_cvtne2ps_pbh(y, x);
        std::memcpy(o, &found, sizeof found);
        return;
    }
#endif
    alignas(64) static const uint16_t upper[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
                                                   33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
    _mm512_storeu_si512(o, _mm512_permutex2var_epi16(raised(x), _mm512_load_si512(upper), raised(y)));
}
#elif defined(__AVX2__) && defined(__F16C__)
#define RL_SIXTEEN 1
typedef float Wide16 __attribute__((vector_size(32)));
constexpr long kLanesOf16 = 8;
RL_INLINE Wide16 lanes(const F16 *x) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(x))); }
RL_INLINE Wide16 lanes(const Bf16 *x) {
    const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i *>(x));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(low), 16));
}
RL_INLINE Wide16 lanes(const float *x) { return _mm256_loadu_ps(x); }
RL_INLINE void store_lanes(float *o, Wide16 x) { _mm256_storeu_ps(o, x); }
RL_INLINE void put_lanes(Wide16 x, F16 *o) {
    _mm_storeu_si128(reinterpret_cast<__m128i *>(o), _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}
RL_INLINE void put_lanes(Wide16 x, Bf16 *o) {
    const __m256i bits = _mm256_castps_si256(x), odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)), quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i out = _mm256_srli_epi32(_mm256_blendv_epi8(up, quiet, nan), 16);
    _mm_storeu_si128(reinterpret_cast<__m128i *>(o), _mm_packus_epi32(_mm256_castsi256_si128(out), _mm256_extracti128_si256(out, 1)));
}
#endif
#if defined(RL_SIXTEEN)
template <class S> RL_INLINE void put_two(Wide16 x, Wide16 y, S *o) {
    put_lanes(x, o);
    put_lanes(y, o + kLanesOf16);
}
#endif

template <class S> inline void widen(const S *x, float *o, long n) {
    long i = 0;
#if defined(RL_SIXTEEN)
    for (; i + kLanesOf16 <= n; i += kLanesOf16) store_lanes(o + i, lanes(x + i));
#endif
#pragma omp simd
    for (long k = i; k < n; ++k) o[k] = widened(x[k]);
}

// Whether a function of numbers is one of vectors of them, too: generic ones are.
#if defined(RL_SIXTEEN)
template <class F, class... X> constexpr bool kOfLanes = std::is_invocable<F, X...>::value;
#else
typedef float Wide16;
template <class F, class... X> constexpr bool kOfLanes = false;
#endif

// A number as a vector has it, and the sizes of numbers: of single ones, and of vectors.
RL_INLINE uint16_t like(uint16_t, uint16_t one) { return one; }
RL_INLINE float like(float, float one) { return one; }
RL_INLINE float magnitude(float x) { return of_bits(bits_of(x) & 0x7fffffffu); }
#if defined(RL_SIXTEEN)
RL_INLINE Wide16 like(Wide16, float one) { return one - Wide16{}; }  // of -0 a sum with 0 is 0
RL_INLINE Wide16 magnitude(Wide16 x) {
    typedef uint32_t Bits __attribute__((vector_size(sizeof(Wide16))));
    return (Wide16)((Bits)x & 0x7fffffffu);
}
#endif

// o[i] = f(i, x[i]...) of rows by such a function: nothing but registers lies between.
template <class S, class F, class... X> RL_INLINE void put_each(S *o, long n, F f, const X *...x) {
    long i = 0;
#if defined(RL_SIXTEEN)
    constexpr long k = kLanesOf16;
    for (; i + 2 * k <= n; i += 2 * k) put_two(f(i, lanes(x + i)...), f(i + k, lanes(x + i + k)...), o + i);
    for (; i + k <= n; i += k) put_lanes(f(i, lanes(x + i)...), o + i);
#endif
#pragma omp simd
    for (long j = i; j < n; ++j) o[j] = narrowed<S>(f(j, widened(x[j])...));
}

template <class S> inline void narrow(const float *x, S *o, long n) {
    put_each(o, n, [](long, auto v) { return v; }, x);
}

// o[i] = f(o[i], x[i]) of numbers of 16 bits, f being of single numbers and of vectors.
template <class S, class F> RL_INLINE void fold(const S *x, float *o, long n, F f) {
    long i = 0;
#if defined(RL_SIXTEEN)
    for (; i + kLanesOf16 <= n; i += kLanesOf16) store_lanes(o + i, f(lanes(o + i), lanes(x + i)));
#endif
    for (; i < n; ++i) o[i] = f(o[i], widened(x[i]));
}

constexpr long kAtOnce = 512;  // numbers of 16 bits in float32 at a time

// Up to N numbers of a row to be read: themselves, or in float32.
template <class S, long N> struct Part {
    alignas(64) float room[kPlain<S> ? 1 : N];  // as lines of the cache, which no vector then crosses
    RL_MEMBER const WideOf<S> *operator()(const S *x, long n) {
        if constexpr (kPlain<S>) {
            return x;
        } else {
            widen(x, room, n);
            return room;
        }
    }
};

// f(where it begins, numbers, how many) of the pieces of a row, up to N long, in the precision that is computed in.
template <long N, class U, class F> RL_INLINE void pieces(const U *x, long n, F f) {
    Part<U, N> part;
    for (long at = 0; at < n; at += N) {
        const long some = n - at < N ? n - at : N;
        f(at, part(x + at, some), some);
    }
}

// The same of two rows.
template <long N, class U, class F> RL_INLINE void pieces2(const U *x, const U *y, long n, F f) {
    Part<U, N> first, second;
    for (long at = 0; at < n; at += N) {
        const long some = n - at < N ? n - at : N;
        f(at, first(x + at, some), second(y + at, some), some);
    }
}

// o[i] = f(i, x[i]) of a row; `o` may be `x`.
template <class S, class F> RL_INLINE void turn(const S *x, S *o, long n, F f) {
    if constexpr (kPlain<S>) {
#pragma omp simd
        for (long i = 0; i < n; ++i) o[i] = f(i, x[i]);
    } else if constexpr (kOfLanes<F, long, Wide16>) {
        put_each(o, n, f, x);
    } else {
        alignas(64) float a[kAtOnce];
        for (long at = 0; at < n; at += kAtOnce) {
            const long count = n - at < kAtOnce ? n - at : kAtOnce;
            widen(x + at, a, count);
#pragma omp simd
            for (long i = 0; i < count; ++i) a[i] = f(at + i, a[i]);
            narrow(a, o + at, count);
        }
    }
}

// o[i] = f(i, x[i], y[i]) of two rows; `o` may be one of them.
template <class S, class F> RL_INLINE void turn2(const S *x, const S *y, S *o, long n, F f) {
    if constexpr (kPlain<S>) {
#pragma omp simd
        for (long i = 0; i < n; ++i) o[i] = f(i, x[i], y[i]);
    } else if constexpr (kOfLanes<F, long, Wide16, Wide16>) {
        put_each(o, n, f, x, y);
    } else {
        alignas(64) float a[kAtOnce], b[kAtOnce];
        for (long at = 0; at < n; at += kAtOnce) {
            const long count = n - at < kAtOnce ? n - at : kAtOnce;
            widen(x + at, a, count);
            widen(y + at, b, count);
#pragma omp simd
            for (long i = 0; i < count; ++i) a[i] = f(at + i, a[i], b[i]);
            narrow(a, o + at, count);
        }
    }
}

// o[i] = f(x[i], y[i], z[i]) of three rows; `o` may be one of them.
template <class S, class F> RL_INLINE void turn3(const S *x, const S *y, const S *z, S *o, long n, F f) {
    if constexpr (kPlain<S>) {
#pragma omp simd
        for (long i = 0; i < n; ++i) o[i] = f(x[i], y[i], z[i]);
    } else {
        alignas(64) float a[kAtOnce], b[kAtOnce], c[kAtOnce];
        for (long at = 0; at < n; at += kAtOnce) {
            const long count = n - at < kAtOnce ? n - at : kAtOnce;
            widen(x + at, a, count);
            widen(y + at, b, count);
            widen(z + at, c, count);
#pragma omp simd
            for (long i = 0; i < count; ++i) a[i] = f(a[i], b[i], c[i]);
            narrow(a, o + at, count);
        }
    }
}

}  // namespace rl

// One exported function per dtype of real numbers, of 16 bits too.
#define RL_ALL(M) RL_BOTH(M) M(rl::Bf16, bf16) M(rl::F16, f16)
