// Optimizer steps whose state is kept in 8 bits, in one pass: a block's codes become numbers, the step is made, and what the
// state has become turns into codes again (Dettmers et al., 2022, arXiv:2110.02861).
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "common.h"
#if defined(__AVX2__)
#include <immintrin.h>  // to look up in registers, which compilers do by way of memory
#endif

namespace rl {

constexpr long kBlock = 256;         // elements that share a scale
constexpr long kBlocksAtOnce = 128;  // for a thread

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
typedef float Floats __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));
typedef int32_t Ints __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));

// Codes as numbers of 32 bits, and back.
RL_INLINE Ints widened(const uint8_t *from) {
#if defined(__AVX512F__)
    return (Ints)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)from));
#elif defined(__AVX2__)
    return (Ints)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)from));
#else
    Ints found;
    for (int i = 0; i < kLanes; ++i) found[i] = from[i];
    return found;
#endif
}
RL_INLINE void narrowed(Ints codes, uint8_t *to) {
#if defined(__AVX512F__)
    _mm_storeu_si128((__m128i *)to, _mm512_cvtepi32_epi8((__m512i)codes));
#elif defined(__AVX2__)
    const __m128i two = _mm_packus_epi32(_mm256_castsi256_si128((__m256i)codes), _mm256_extracti128_si256((__m256i)codes, 1));
    _mm_storel_epi64((__m128i *)to, _mm_packus_epi16(two, two));
#else
    for (int i = 0; i < kLanes; ++i) to[i] = (uint8_t)codes[i];
#endif
}

RL_INLINE float root(float x) { return std::sqrt(x); }
RL_INLINE double root(double x) { return std::sqrt(x); }
RL_INLINE Floats root(Floats x) {
#if defined(__AVX512F__)
    return (Floats)_mm512_sqrt_ps((__m512)x);
#elif defined(__AVX2__)
    return (Floats)_mm256_sqrt_ps((__m256)x);
#else
    for (int i = 0; i < kLanes; ++i) x[i] = std::sqrt(x[i]);
    return x;
#endif
}

RL_INLINE float largest(Floats x) {
#if defined(__AVX512F__)
    return _mm512_reduce_max_ps((__m512)x);
#else
    float most = 0;
    for (int i = 0; i < kLanes; ++i) most = x[i] > most ? x[i] : most;
    return most;
#endif
}

// A number for each decade, twice, so that 8 lanes find it as 16 do.
struct Table {
    float by[16] = {};

    RL_MEMBER Table times(float scale) const {
        Table found;
        for (int i = 0; i < 16; ++i) found.by[i] = by[i] * scale;
        return found;
    }

    constexpr void set(int k, double value) { by[k & 7] = by[(k & 7) + 8] = (float)value; }

    // by[at], of which the last three bits count.
    RL_MEMBER Floats operator[](Ints at) const {
#if defined(__AVX512F__)
        return (Floats)_mm512_permutexvar_ps((__m512i)at, _mm512_loadu_ps(by));
#elif defined(__AVX2__)
        return (Floats)_mm256_permutevar8x32_ps(_mm256_loadu_ps(by), (__m256i)at);
#else
        Floats found;
        for (int i = 0; i < kLanes; ++i) found[i] = by[at[i] & 7];
        return found;
#endif
    }
};

// The dynamic map: decade k, 10^(k-6) times [0.1, 1], in 2^k equal parts (twice as many without a sign), each standing for
// its middle; and 0 and 1.  Numbered upwards, J, the parts of decade k are from 2^k (2^(k+1)) on, and 1, the next after the
// last, is alone in decade 7.  What belongs to J is linear in J by decade, and so is the other way round.
template <bool kSigned> struct Map {
    static constexpr int kShift = kSigned ? 0 : 1;
    static constexpr int kBits = 127 + kShift;  // by which the exponent of J as a float is more than the decade
    // Below this is 0.  A mean square is divided by its root: it stays above 0 if it is.
    static constexpr float kLeast = kSigned ? 0.275e-6f : std::numeric_limits<float>::min();
    Table slope, start;                // of what J stands for, by its exponent
    Table edge, scale, offset, most;  // of the number of what is at least `edge`, by decade

    constexpr Map() {
        double tens = 1e-6, below = 1;  // below: the parts of the decade before
        for (int k = 0; k < 8; ++k, tens *= 10) {
            const double parts = 1 << (k + kShift), first = parts - kShift;
            slope.set(k + kBits, tens * 0.9 / parts), start.set(k + kBits, tens * (0.45 / parts - 0.8));
            edge.set(k, k ? tens / 10 * (1 + 0.9 / below) : 0);  // half way from the last of a decade to the first of this
            scale.set(k, parts / (0.9 * tens)), offset.set(k, first - parts / 9 + 1e-4), most.set(k, first + parts - 1);
            below = parts;
        }
        slope.set(7 + kBits, kSigned ? 0 : 1. / 255), start.set(7 + kBits, kSigned ? 1 : -1. / 255);  // of 256 and 1: 1 and 0
        edge.set(7, 1 - 0.45 / below), scale.set(7, 0), offset.set(7, kSigned ? 128 : 255), most.set(7, 255);
    }

    // slope, start: those of the map, times a scale.
    static RL_MEMBER Floats decode(Ints code, const Table &slope, const Table &start) {
        const Ints number = code - (kSigned ? 127 : -1);
        const Floats j = __builtin_convertvector(kSigned ? (number < 0 ? -number : number) : number, Floats);
        const Ints exponent = (Ints)j >> 23;
        const Floats value = slope[exponent] * j + start[exponent];
        return kSigned ? (Floats)((Ints)(number != 0 ? value : Floats{}) | (number & INT32_MIN)) : value;
    }

    // Of numbers in [-1, 1], or what rounding made of such; NaN is 0.
    RL_MEMBER Ints encode(Floats x) const {
        const Floats y = kSigned ? (Floats)((Ints)x & INT32_MAX) : x;
        // The logarithm by the bits is low by up to 0.026, so that the decade is this one or that below.
        Floats about = __builtin_convertvector((Ints)y, Floats) * (0.30103f / 8388608.f) + (7.028f - 127.f * 0.30103f);
        about = about < 7.f ? about : Floats{} + 7.f;
        if (!kSigned) about = about > 0.f ? about : Floats{};
        Ints k = __builtin_convertvector(about, Ints);
        k += y < edge[k];  // -1 where it holds
        Floats inside = y * scale[k] + offset[k];
        inside = inside < most[k] ? inside : most[k];
        if (!kSigned) inside = inside > 1.f ? inside : Floats{} + 1.f;
        inside = y >= kLeast ? inside : Floats{};
        if (!kSigned) return __builtin_convertvector(inside, Ints);
        const Ints code = __builtin_convertvector((Floats)((Ints)inside | ((Ints)x & INT32_MIN)), Ints) + 127;
        return code > 0 ? code : Ints{};  // there is no -1
    }
};

template <bool kSigned> static constexpr Map<kSigned> kMap{};

template <class V> RL_INLINE V at(const float *from, long i) {
    V found;
    std::memcpy(&found, from + i, sizeof found);
    return found;
}
template <class V> RL_INLINE void put(V x, float *to, long i) { std::memcpy(to + i, &x, sizeof x); }

// A block of codes as numbers, whose tables are those of the map times the block's scale.
template <bool kSigned> struct Reader {
    const uint8_t *codes;
    Table slope, start;

    RL_MEMBER Reader(const uint8_t *from, float scale)
        : codes(from), slope(kMap<kSigned>.slope.times(scale)), start(kMap<kSigned>.start.times(scale)) {}
    RL_MEMBER Floats operator[](long i) const { return Map<kSigned>::decode(widened(codes + i), slope, start); }
};

// What a block's scale is, and what numbers are multiplied by.  What is not finite is no scale: it spoils its own
// parameter alone.
RL_INLINE float scale_of(Floats most, float &scale) {
    constexpr float kMost = std::numeric_limits<float>::max(), kNone = 4 * std::numeric_limits<float>::min();
    const float found = largest(most);
    scale = found < kNone ? 0.f : found < kMost ? found : kMost;
    return found < kNone ? 0.f : 1.f / scale;
}

// What a step of one block reads and writes; where there is one state alone, nothing of the second.
template <class T> struct Piece {
    T *p;
    const T *g;
    uint8_t *first, *second;
    float *scale1, *scale2;
};

// The step of a block in the parameter's own type, which is not float: by numbers that lie in between.
template <class T, class Rule> RL_INLINE void step_numbers(T *p, const T *g, float *m, float *v, const Rule &r) {
#pragma omp simd
    for (long i = 0; i < kBlock; ++i) {
        T a = (T)m[i], b = Rule::kSecond ? (T)v[i] : T(0);
        p[i] = r.step(p[i], g[i], a, b);
        m[i] = (float)a;
        if (Rule::kSecond) v[i] = (float)b;
    }
}

template <class T, class Rule> RL_INLINE void step_block(Piece<T> x, const Rule &r) {
    float m[kBlock], v[kBlock];
    Floats most1{}, most2{};
    const Reader<true> first(x.first, *x.scale1);
    const Reader<false> second(Rule::kSecond ? x.second : x.first, Rule::kSecond ? *x.scale2 : 0.f);
    if constexpr (!std::is_same<T, float>::value) {
        for (long i = 0; i < kBlock; i += kLanes) {
            put(first[i], m, i);
            if (Rule::kSecond) put(second[i], v, i);
        }
        step_numbers(x.p, x.g, m, v, r);
    }
    for (long i = 0; i < kBlock; i += kLanes) {
        Floats a, b{};
        if constexpr (std::is_same<T, float>::value) {
            a = first[i];
            if (Rule::kSecond) b = second[i];
            put(r.step(at<Floats>(x.p, i), at<Floats>(x.g, i), a, b), x.p, i);
            put(a, m, i);
            if (Rule::kSecond) put(b, v, i);
        } else {
            a = at<Floats>(m, i);
            if (Rule::kSecond) b = at<Floats>(v, i);
        }
        a = (Floats)((Ints)a & INT32_MAX);
        most1 = a > most1 ? a : most1;
        most2 = b > most2 ? b : most2;
    }
    const float over1 = scale_of(most1, *x.scale1), over2 = Rule::kSecond ? scale_of(most2, *x.scale2) : 0.f;
    for (long i = 0; i < kBlock; i += kLanes) {
        narrowed(kMap<true>.encode(at<Floats>(m, i) * over1), x.first + i);
        if (Rule::kSecond) narrowed(kMap<false>.encode(at<Floats>(v, i) * over2), x.second + i);
    }
}

// The last block, filled up with zeros.
template <class T, class Rule> static void step_rest(Piece<T> x, long count, const Rule &r) {
    T p[kBlock] = {}, g[kBlock] = {};
    uint8_t first[kBlock], second[kBlock] = {};
    std::copy_n(x.p, count, p), std::copy_n(x.g, count, g);
    std::fill(std::copy_n(x.first, count, first), first + kBlock, uint8_t(127));
    if (Rule::kSecond) std::copy_n(x.second, count, second);
    step_block<T>({p, g, first, second, x.scale1, x.scale2}, r);
    std::copy_n(p, count, x.p), std::copy_n(first, count, x.first);
    if (Rule::kSecond) std::copy_n(second, count, x.second);
}

template <class T, class Rule> static void step_blocks(Piece<T> whole, long n, Rule r) {
    parallel_for((n + kBlock - 1) / kBlock, kBlocksAtOnce, [=](long begin, long end) {
        for (long block = begin; block < end; ++block) {
            const long at = block * kBlock;
            Piece<T> x{whole.p + at, whole.g + at, whole.first + at, whole.second, whole.scale1 + block, whole.scale2};
            if (Rule::kSecond) x.second += at, x.scale2 += block;
            if (n - at >= kBlock) step_block<T>(x, r);
            else step_rest<T>(x, n - at, r);
        }
    });
}

// The rules are for numbers and for vectors of such, V.
template <class T> struct AdamInBlocks {
    static constexpr bool kSecond = true;
    T step_size, one_minus_beta1, beta2, one_minus_beta2, over_root, eps, decay, shrink, sign;

    template <class V> RL_MEMBER V step(V p, V g, V &m, V &v) const {
        const V x = p * shrink;
        V d = sign * g;
        if (decay != T(0)) d += decay * x;
        m += one_minus_beta1 * (d - m);
        v = v * beta2 + one_minus_beta2 * d * d;
        return x - step_size * m / (root(v) * over_root + eps);
    }
};

template <class T> struct SgdInBlocks {
    static constexpr bool kSecond = false;
    T lr, momentum, keep, decay, sign;
    bool nesterov, first;

    template <class V> RL_MEMBER V step(V p, V g, V &m, V &) const {
        V d = sign * g;
        if (decay != T(0)) d += decay * p;
        m = first ? d : m * momentum + keep * d;
        return p - lr * (nesterov ? d + momentum * m : m);
    }
};

template <class T> struct LionRule {
    static constexpr bool kSecond = false;
    T lr, beta1, beta2, shrink, sign;

    template <class V> RL_MEMBER V step(V p, V g, V &m, V &) const {
        const V d = sign * g, c = beta1 * m + (T(1) - beta1) * d, up = V{} + lr;
        const V down = c < T(0) ? -up : c;  // of NaN: NaN
        m = beta2 * m + (T(1) - beta2) * d;
        return p * shrink - (c > T(0) ? up : down);
    }
};

template <class T> static void lion(T *p, const T *g, T *m, long n, LionRule<T> r) {
    parallel_for(n, kBlock * kBlocksAtOnce, [=](long begin, long end) {
        T unused = 0;
#pragma omp simd
        for (long i = begin; i < end; ++i) {
            T mean = m[i];
            p[i] = r.step(p[i], g[i], mean, unused);
            m[i] = std::fabs(mean) < std::numeric_limits<T>::min() ? T(0) : mean;
        }
    });
}

}  // namespace rl

#define ALL(T, S)                                                                                                  \
    RL_EXPORT void rl_adam_in_blocks_##S(Array *p_, Array *g_, Array *m_, Array *v_, Array *top1_, Array *top2_,   \
                                         long n, double step_size, double beta1, double beta2, double root,        \
                                         double eps, double decay, double shrink, double sign) {                   \
        rl::Call call("adam_in_blocks");                                                                           \
        const long blocks = (n + rl::kBlock - 1) / rl::kBlock;                                                     \
        rl::Piece<T> x{call.pair_out<T>("parameter", p_, n), call.pair_in<T>("gradient", g_, n),                   \
                       call.pair_out<uint8_t>("state1", m_, n), call.pair_out<uint8_t>("state2", v_, n),           \
                       call.out<float>("absmax1", top1_, blocks), call.out<float>("absmax2", top2_, blocks)};      \
        rl::AdamInBlocks<T> r{(T)step_size, (T)(1 - beta1), (T)beta2, (T)(1 - beta2), (T)(1 / root), (T)eps,       \
                              (T)decay, (T)shrink, (T)sign};                                                       \
        call.run([=] { rl::step_blocks<T>(x, n, r); });                                                            \
    }                                                                                                              \
    RL_EXPORT void rl_sgd_in_blocks_##S(Array *p_, Array *g_, Array *m_, Array *top_, long n, double lr,           \
                                        double momentum, double dampening, double decay, double sign,              \
                                        int nesterov, int first) {                                                 \
        rl::Call call("sgd_in_blocks");                                                                            \
        rl::Piece<T> x{call.pair_out<T>("parameter", p_, n), call.pair_in<T>("gradient", g_, n),                   \
                       call.pair_out<uint8_t>("state1", m_, n), nullptr,                                           \
                       call.out<float>("absmax1", top_, (n + rl::kBlock - 1) / rl::kBlock), nullptr};              \
        rl::SgdInBlocks<T> r{(T)lr, (T)momentum, (T)(1 - dampening), (T)decay, (T)sign, !!nesterov, !!first};      \
        call.run([=] { rl::step_blocks<T>(x, n, r); });                                                            \
    }                                                                                                              \
    RL_EXPORT void rl_lion_in_blocks_##S(Array *p_, Array *g_, Array *m_, Array *top_, long n, double lr,          \
                                         double beta1, double beta2, double shrink, double sign) {                 \
        rl::Call call("lion_in_blocks");                                                                           \
        rl::Piece<T> x{call.pair_out<T>("parameter", p_, n), call.pair_in<T>("gradient", g_, n),                   \
                       call.pair_out<uint8_t>("state1", m_, n), nullptr,                                           \
                       call.out<float>("absmax1", top_, (n + rl::kBlock - 1) / rl::kBlock), nullptr};              \
        rl::LionRule<T> r{(T)lr, (T)beta1, (T)beta2, (T)shrink, (T)sign};                                          \
        call.run([=] { rl::step_blocks<T>(x, n, r); });                                                            \
    }                                                                                                              \
    RL_EXPORT void rl_lion_##S(Array *p_, Array *g_, Array *m_, long n, double lr, double beta1, double beta2,     \
                               double shrink, double sign) {                                                       \
        rl::Call call("lion");                                                                                     \
        T *p = call.pair_out<T>("parameter", p_, n), *m = call.pair_out<T>("exp_avg", m_, n);                      \
        const T *g = call.pair_in<T>("gradient", g_, n);                                                           \
        rl::LionRule<T> r{(T)lr, (T)beta1, (T)beta2, (T)shrink, (T)sign};                                          \
        call.run([=] { rl::lion<T>(p, g, m, n, r); });                                                             \
    }
RL_BOTH(ALL)
