// Special functions: computed in double, also of float32, block by block, and within a block region by region, so that what
// is dear is computed of those numbers alone that need it, and still as SIMD code.
#pragma once
#include "vecmath.h"

namespace rl {

constexpr int kBlock = 512;

// The first N terms of a series of Chebyshev's polynomials, as powers.
template <int N> struct Powers {
    double c[N];
};
template <int N, int M> constexpr Powers<N> powers(const double (&series)[M]) {
    static_assert(N <= M, "terms that there are");
    long double sum[N] = {}, before[N] = {}, now[N] = {};  // of T_(k - 1) and T_k
    now[0] = 1;
    for (int k = 0; k < N; ++k) {
        for (int i = 0; i < N; ++i) sum[i] += series[k] * now[i];
        for (int i = N - 1; i >= 0; --i) {
            const long double next = (k ? 2 : 1) * (i ? now[i - 1] : 0) - before[i];
            before[i] = now[i];
            now[i] = next;
        }
    }
    Powers<N> out = {};
    for (int i = 0; i < N; ++i) out.c[i] = (double)sum[i];
    return out;
}

// Terms that float64 takes, and those that are enough for float32.
template <class T> constexpr int terms(int all, int few) { return sizeof(T) == 8 ? all : few; }

// The first N of a row of coefficients, lowest power first.
template <int N, int M> RL_INLINE double first(const double (&c)[M], double x) {
    static_assert(N <= M, "terms that there are");
    double p = c[N - 1];
#pragma GCC unroll 32
    for (int k = N - 2; k >= 0; --k) p = p * x + c[k];
    return p;
}

// r = f(v, r).  All that f calls is inlined here, however long it is: calls are no SIMD code.
template <class F> __attribute__((noinline, flatten)) static void every(const double *v, double *r, int n, F f) {
#pragma omp simd
    for (int i = 0; i < n; ++i) r[i] = f(v[i], r[i]);
}

// r = f(v, r) of those numbers v that are chosen: gathered first, where they are not all.
template <class C, class F> static void where(const double *v, double *r, int n, C chosen, F f) {
    int count = 0;
#pragma omp simd reduction(+ : count)
    for (int i = 0; i < n; ++i) count += chosen(v[i]);
    if (count == n) return every(v, r, n, f);
    if (!count) return;
    int place[kBlock];
    double from[kBlock], to[kBlock];
    for (int i = 0, k = 0; i < n; ++i) {
        place[k] = i;
        k += chosen(v[i]);
    }
    for (int i = 0; i < count; ++i) from[i] = v[place[i]], to[i] = r[place[i]];
    every(from, to, count, f);
    for (int i = 0; i < count; ++i) r[place[i]] = to[i];
}

// f(v, r, n) makes r, which are the numbers v before, of a block's numbers.
template <class T, class F> static void blocks(const T *x, T *o, long n, F f) {
    parallel_for(n, kGrain, [=](long begin, long end) {
        double v[kBlock], r[kBlock];
        for (long i = begin; i < end; i += kBlock) {
            const int some = end - i < kBlock ? (int)(end - i) : kBlock;
#pragma omp simd
            for (int j = 0; j < some; ++j) v[j] = r[j] = x[i + j];
            f(v, r, some);
#pragma omp simd
            for (int j = 0; j < some; ++j) o[i + j] = (T)r[j];
        }
    });
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// e^x of x <= 700: for float32 by fewer terms, and 0 where that is too small for it.
template <class T> RL_INLINE double exp_for(double x) {
    if (sizeof(T) == 8) return rl::exp(x);
    const double shift = 6755399441055744.0, low = choose(x < -700.0, -700.0, x);
    const double t = low * 1.44269504088896340736 + shift, r = low - (t - shift) * 0.693147180559945309417;
    double p = 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0, p = p * r + 1.0 / 40320.0, p = p * r + 1.0 / 5040.0, p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0, p = p * r + 1.0 / 24.0, p = p * r + 1.0 / 6.0, p = p * r + 0.5, p = p * r + 1.0;
    return (p * r + 1.0) * bits<double>((bits<uint64_t>(t) - bits<uint64_t>(shift) + 1023) << 52);
}

// sin t, |t| <= pi / 2, by its powers.
RL_INLINE double sine(double t) {
    const double z = t * t;
    double p = -1.0 / 25852016738884976640000.0;
    p = p * z + 1.0 / 51090942171709440000.0, p = p * z - 1.0 / 121645100408832000.0, p = p * z + 1.0 / 355687428096000.0;
    p = p * z - 1.0 / 1307674368000.0, p = p * z + 1.0 / 6227020800.0, p = p * z - 1.0 / 39916800.0;
    p = p * z + 1.0 / 362880.0, p = p * z - 1.0 / 5040.0, p = p * z + 1.0 / 120.0, p = p * z - 1.0 / 6.0;
    return t + t * z * p;
}

constexpr double kPi = 3.14159265358979323846;

// sin and cos of pi x, |x| <= 1/2, each exact where it is 0.
RL_INLINE double sine_pi(double x) { return sine(kPi * x); }
RL_INLINE double cosine_pi(double x) { return sine(kPi * (0.5 - std::fabs(x))); }

}  // namespace rl

// Kernels for float32 and float64 of a function of a block.
#define BLOCKS(NAME)                                                                                           \
    template <class T> static void NAME##_all(Array *x_, Array *o_, long n) {                                  \
        rl::Call call(#NAME);                                                                                  \
        const T *x = call.pair_in<T>("input", x_, n);                                                          \
        T *o = call.pair_out<T>("out", o_, n);                                                                 \
        call.run([=] { rl::blocks(x, o, n, [](const double *v, double *r, int k) { rl::NAME<T>(v, r, k); }); }); \
    }                                                                                                          \
    RL_EXPORT void rl_##NAME##_f32(Array *x, Array *o, long n) { NAME##_all<float>(x, o, n); }                 \
    RL_EXPORT void rl_##NAME##_f64(Array *x, Array *o, long n) { NAME##_all<double>(x, o, n); }
