// exp, log, tanh, erf and what follows from them, without branches, so that loops over them become SIMD code
// with any compiler and need no vector library.  float32 polynomials come from tools/fit_polynomials.py,
// float64 ones are series; the errors are 1 to 2 units in the last place.  NaN goes through, infinities and
// subnormals are exact.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "common.h"

namespace rl {

template <class To, class From> RL_INLINE To bits(From x) {
    static_assert(sizeof(To) == sizeof(From), "same size");
    To out;
    std::memcpy(&out, &x, sizeof(To));
    return out;
}

// c ? a : b, of numbers both computed before: where either is dear, compilers make a branch of the ternary, and no SIMD code.
RL_INLINE float choose(bool c, float a, float b) {
    const uint32_t mask = -(uint32_t)c;
    return bits<float>((bits<uint32_t>(a) & mask) | (bits<uint32_t>(b) & ~mask));
}
RL_INLINE double choose(bool c, double a, double b) {
    const uint64_t mask = -(uint64_t)c;
    return bits<double>((bits<uint64_t>(a) & mask) | (bits<uint64_t>(b) & ~mask));
}

template <class T> constexpr T infinity() { return std::numeric_limits<T>::infinity(); }

// e^x: x = n ln 2 + r, e^r by a polynomial, 2^n as two factors so that subnormal results are exact too.
// Adding 1.5 * 2^23 (2^52) rounds to an integer and leaves it in the low bits.
constexpr float kWhole = 12582912.0f;
constexpr double kWholeLong = 6755399441055744.0;

// e^r - 1 of |r| <= ln 2 / 2.
RL_INLINE float exp_less_one(float r) {
    float p = 1.392620383e-03f;
    p = p * r + 8.363194764e-03f;
    p = p * r + 4.166655615e-02f;
    p = p * r + 1.666657627e-01f;
    p = p * r + 0.5f;
    return p * (r * r) + r;
}

RL_INLINE double exp_less_one(double r) {
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    return p * (r * r) + r;
}

// x - n ln 2 of t = n + kWhole, the whole number n next to x / ln 2.
RL_INLINE float left_of(float x, float &t) {
    t = x * 1.44269504088896341f + kWhole;
    float n = t - kWhole;
    float r = x - n * 0.693145751953125f;
    return r - n * 1.42860682030941723e-6f;
}

RL_INLINE double left_of(double x, double &t) {
    t = x * 1.44269504088896340736 + kWholeLong;
    double n = t - kWholeLong;
    double r = x - n * 6.93147180369123816490e-01;
    return r - n * 1.90821492927058770002e-10;
}

// p 2^n of t = n + kWhole.
RL_INLINE float times_power(float p, float t) {
    uint32_t i = bits<uint32_t>(t) - bits<uint32_t>(kWhole) + 254;  // n + 254 > 0
    uint32_t half = i >> 1;
    return p * bits<float>(half << 23) * bits<float>((i - half) << 23);
}

RL_INLINE double times_power(double p, double t) {
    uint64_t i = bits<uint64_t>(t) - bits<uint64_t>(kWholeLong) + 2046;
    uint64_t half = i >> 1;
    return p * bits<double>(half << 52) * bits<double>((i - half) << 52);
}

RL_INLINE float exp(float x) {
    x = x < -105.0f ? -105.0f : x;
    x = x > 89.0f ? 89.0f : x;
    float t, r = left_of(x, t);
    return times_power(exp_less_one(r) + 1.0f, t);
}

RL_INLINE double exp(double x) {
    x = x < -746.0 ? -746.0 : x;
    x = x > 710.0 ? 710.0 : x;
    double t, r = left_of(x, t);
    return times_power(exp_less_one(r) + 1.0, t);
}

// 2^x: what is left of a whole number is exact.
RL_INLINE float exp2(float x) {
    x = x < -151.0f ? -151.0f : x;
    x = x > 128.0f ? 128.0f : x;
    float t = x + kWhole, r = (x - (t - kWhole)) * 0.693147180559945309f;
    return times_power(exp_less_one(r) + 1.0f, t);
}

RL_INLINE double exp2(double x) {
    x = x < -1076.0 ? -1076.0 : x;
    x = x > 1024.0 ? 1024.0 : x;
    double t = x + kWholeLong, r = (x - (t - kWholeLong)) * 0.693147180559945309417;
    return times_power(exp_less_one(r) + 1.0, t);
}

// e^x - 1, exact near 0: 2 (2^(n-1) (e^r - 1) + (2^(n-1) - 1/2)), whose powers do not overflow before the result does.
RL_INLINE float expm1(float x) {
    x = x < -30.0f ? -30.0f : x;
    x = x > 89.0f ? 89.0f : x;
    float t, r = left_of(x, t);
    float half = bits<float>((bits<uint32_t>(t) - bits<uint32_t>(kWhole) + 126) << 23);
    return 2.0f * (exp_less_one(r) * half + (half - 0.5f));
}

RL_INLINE double expm1(double x) {
    x = x < -50.0 ? -50.0 : x;
    x = x > 710.0 ? 710.0 : x;
    double t, r = left_of(x, t);
    double half = bits<double>((bits<uint64_t>(t) - bits<uint64_t>(kWholeLong) + 1022) << 52);
    return 2.0 * (exp_less_one(r) * half + (half - 0.5));
}

// log x of normal numbers over 0: x = 2^e m with m in [sqrt 1/2, sqrt 2), log m = 2 artanh((m - 1) / (m + 1)).  more: added to e.
RL_INLINE float log_of_normal(float x, float more = 0.0f) {
    uint32_t i = bits<uint32_t>(x) - 0x3f3504f3u;  // sqrt(1/2)
    float e = (float)((int32_t)i >> 23) + more;
    float m = bits<float>((i & 0x007fffffu) + 0x3f3504f3u);
    float f = m - 1.0f, s = f / (m + 1.0f), z = s * s;
    float q = (2.958219349e-01f * z + 3.998872936e-01f) * z + 6.666668653e-01f;
    // 2 s = f - s f exactly in the reals, and rounds better
    return e * 0.693145751953125f + (f + (s * (z * q - f) + e * 1.42860682030941723e-6f));
}

// The series of artanh to s^23.
RL_INLINE double log_of_normal(double x, double more = 0.0) {
    uint64_t i = bits<uint64_t>(x) - 0x3fe6a09e667f3bcdull;  // sqrt(1/2)
    double e = (double)(int32_t)(int64_t(i) >> 52) + more;
    double m = bits<double>((i & 0x000fffffffffffffull) + 0x3fe6a09e667f3bcdull);
    double f = m - 1.0, s = f / (m + 1.0), z = s * s, q = 1.0 / 23;
    q = q * z + 1.0 / 21, q = q * z + 1.0 / 19, q = q * z + 1.0 / 17, q = q * z + 1.0 / 15, q = q * z + 1.0 / 13;
    q = q * z + 1.0 / 11, q = q * z + 1.0 / 9, q = q * z + 1.0 / 7, q = q * z + 1.0 / 5, q = q * z + 1.0 / 3;
    // 2 s = f - s f; of ln 2 the first part is exact in products with e
    return e * 6.93147180369123816490e-01 + (f + (s * (2.0 * z * q - f) + e * 1.90821492927058770002e-10));
}

template <class T> RL_INLINE T log(T x) {
    constexpr int kDigits = std::numeric_limits<T>::digits;
    bool tiny = x < std::numeric_limits<T>::min();
    T out = log_of_normal(choose(tiny, x * T(1ull << kDigits), x), choose(tiny, T(-kDigits), T(0)));
    out = choose(x == infinity<T>(), x, out);
    out = choose(x == T(0), -infinity<T>(), out);
    return choose((x < T(0)) | (x != x), std::numeric_limits<T>::quiet_NaN(), out);
}

// sin x and cos x of x from 0 to 2 pi: what is left of multiples of pi / 2, in three parts of which two are exact in products.
RL_INLINE void sin_cos(float x, float &sine, float &cosine) {
    const float shift = 12582912.0f;
    float t = x * 0.636619772f + shift, n = t - shift;
    float r = ((x - n * 1.5703125f) - n * 4.83751296997e-4f) - n * 7.5497899549e-8f, z = r * r;
    float s = r + r * z * (((2.724961860e-06f * z - 1.984008413e-04f) * z + 8.333331905e-03f) * z - 1.666666716e-01f);
    float c = 1.0f - 0.5f * z + z * z * ((2.454768946e-05f * z - 1.388830133e-03f) * z + 4.166666418e-02f);
    uint32_t quarter = bits<uint32_t>(t);
    float first = choose(quarter & 1, c, s), second = choose(quarter & 1, s, c);
    sine = bits<float>(bits<uint32_t>(first) ^ (quarter & 2) << 30);
    cosine = bits<float>(bits<uint32_t>(second) ^ ((quarter + 1) & 2) << 30);
}

RL_INLINE float tanh(float x) {
    float a = std::fabs(x), z = x * x;
    float p = 2.370762872e-03f;
    p = p * z - 8.410068229e-03f;
    p = p * z + 2.178832144e-02f;
    p = p * z - 5.396155268e-02f;
    p = p * z + 1.333331317e-01f;
    p = p * z - 3.333333433e-01f;
    p = p * z * x + x;
    float large = 1.0f - 2.0f / (rl::exp(2.0f * a) + 1.0f);
    float out = a < 0.6f ? p : large;
    return bits<float>(bits<uint32_t>(out) | (bits<uint32_t>(x) & 0x80000000u));  // of -0, too
}

RL_INLINE double tanh(double x) {
    double a = std::fabs(x), e = rl::expm1(2.0 * (a > 20.0 ? 20.0 : a));  // tanh(20) rounds to 1
    double out = choose(x != x, x, e / (e + 2.0));
    return bits<double>(bits<uint64_t>(out) | (bits<uint64_t>(x) & 0x8000000000000000ull));
}

RL_INLINE float erf(float x) {
    float t = std::fabs(x), z = x * x;
    float small = -5.979255657e-04f;
    small = small * z + 4.991230555e-03f;
    small = small * z - 2.676556073e-02f;
    small = small * z + 1.128179654e-01f;
    small = small * z - 3.761249185e-01f;
    small = small * z + 1.283791512e-01f;
    small = small * x + x;
    float u = t > 4.0f ? 4.0f : t;  // erf(4) rounds to 1
    float p = -1.046065677e-06f;
    p = p * u + 3.438850763e-05f;
    p = p * u - 4.988249857e-04f;
    p = p * u + 4.303789232e-03f;
    p = p * u - 2.513954975e-02f;
    p = p * u + 1.078556553e-01f;
    p = p * u + 6.341481805e-01f;
    p = p * u + 1.289027929e-01f;
    float large = 1.0f - rl::exp(-u - u * p);
    large = x < 0.0f ? -large : large;
    return t < 0.925f ? small : large;
}

constexpr double kErfSmall[] = {
    1.28379167095512586e-01, -3.76126389031837538e-01, 1.12837916709551206e-01, -2.68661706451298402e-02,
    5.22397762542329853e-03, -8.54832702193482970e-04, 1.20553329028887357e-04, -1.49256475675193321e-05,
    1.64620454414684182e-06, -1.63646421581676080e-07, 1.47924012094047424e-08, -1.21645600572830445e-09,
    8.70904512905175814e-11, -4.23094582429334166e-12};
constexpr double kErfLarge[] = {
    1.41124374021481742e+01, 1.81652489709129767e+01, 6.04220659213893896e+00, 8.16509097178090559e-02,
    -3.41284110797497736e-02, 1.43845483303334503e-02, -5.95370447619026234e-03, 2.37399728051356385e-03,
    -8.93576585584579400e-04, 3.07819559513963835e-04, -9.09009021725699131e-05, 1.84745239537614198e-05,
    1.47750359964108903e-06, -4.56596712020317964e-06, 3.42229433446200081e-06, -1.91788917114433112e-06,
    9.12436506544598895e-07, -3.84373941652738461e-07, 1.36119720431970227e-07, -2.61314587092395643e-08,
    -3.92237749456926385e-09, -1.93055092834146443e-10, -6.62147902093769168e-10, 5.61802765891520536e-09,
    -3.66309970688539249e-09, 2.56688253565794241e-10, 2.28367045689315792e-10};

template <class T, int N> RL_INLINE T horner(const T (&c)[N], T x) {
    T p = c[N - 1];
#pragma GCC unroll 32
    for (int k = N - 2; k >= 0; --k) p = p * x + c[k];
    return p;
}

RL_INLINE double erf(double x) {
    double t = std::fabs(x), z = x * x;
    double small = x + x * horner(kErfSmall, z);
    double u = t > 6.0 ? 6.0 : t;  // erf(6) rounds to 1
    double large = 1.0 - rl::exp(-horner(kErfLarge, (u - 3.5) / 2.5));
    large = x < 0.0 ? -large : large;
    return t < 1.0 ? small : large;
}

// The normal distribution function, to 1e-7 absolutely (float32): one polynomial instead of erf's two and an
// exponential, since the 1/2 in the sum hides relative errors of what is added.  Exactly 0 and 1 beyond 5.5.
constexpr float kNormal[] = {
    1.285519302e-01f, -6.417232752e-02f, 4.773778468e-02f, -3.879340738e-02f,
    3.206742927e-02f, -2.604036964e-02f, 2.038357221e-02f, -1.504235063e-02f,
    1.016775519e-02f, -6.700172089e-03f, 4.718356300e-03f, -2.593710553e-03f,
    6.437078118e-04f, -4.001957714e-04f, 6.551481783e-04f, -2.740660275e-04f};

RL_INLINE float normal(float x) {
    float p = 0.5f + x * horner(kNormal, x * x * (2.0f / 30.25f) - 1.0f);
    p = x > 5.5f ? 1.0f : p;
    return x < -5.5f ? 0.0f : p;
}

RL_INLINE double normal(double x) { return 0.5 * (1.0 + rl::erf(x * 0.70710678118654752440)); }

template <class T> RL_INLINE T sigmoid(T x) { return T(1) / (T(1) + rl::exp(-x)); }

// log(1 + e) of e from 0 to 1 as log(u) e / (u - 1), u = 1 + e rounded: the rounding of u cancels (Kahan).
template <class T> RL_INLINE T log1p_small(T e) {
    T u = T(1) + e, d = u - T(1);
    return choose(d == T(0), e, log_of_normal(u) * e / choose(d == T(0), T(1), d));
}

// log(1 + e^x), the form of both infinities and of large |x| included.
template <class T> RL_INLINE T log1p_exp(T x) {
    T l = log1p_small(rl::exp(-std::fabs(x)));
    return (x > T(0) ? x : T(0)) + choose(x != x, x, l);
}

// How far apart two numbers are; equal ones not at all, where the difference of infinities is NaN.
template <class T> RL_INLINE T apart(T x, T y) { return choose(x == y, T(0), std::fabs(x - y)); }

template <class T> RL_INLINE T logaddexp(T x, T y) { return choose(x > y, x, y) + log1p_small(rl::exp(-apart(x, y))); }

}  // namespace rl
