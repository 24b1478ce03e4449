// The gamma function's relatives, after reference/gamma.py: series of Stirling's kind after a shift of the argument, reflection
// below zero (Abramowitz and Stegun, chapter 6); lgamma near 1 and 2 by a Chebyshev series.
#include "special.h"

namespace rl {

// lgamma(2 + z) / z in 2 z, |z| <= 1/2.
constexpr double kLogGamma[] = {
    0.41418612492156676, 0.16322170068760064, -0.008658972394126285, 0.0006727515726001485, -6.139556963628233e-05,
    6.110065797003576e-06, -6.410003033826223e-07, 6.962242692768951e-08, -7.747248733788217e-09, 8.774075140687239e-10,
    -1.0070266869830198e-10, 1.1678602130652374e-11, -1.3656871334744932e-12, 1.6079351149711552e-13,
    -1.9039501088488732e-14, 2.2653768767833064e-15, -2.706656814831896e-16, 3.245660731626191e-17, -3.904483378457447e-18,
    4.710435641256405e-19};

// Of the asymptotic series: in 1 / x^2 of x times what lgamma has beside logarithms; of digamma; Bernoulli's numbers.
constexpr double kStirling[] = {
    0.08333333333333333, -0.002777777777777778, 0.0007936507936507937, -0.0005952380952380952, 0.0008417508417508418,
    -0.0019175269175269174, 0.006410256410256411, -0.02955065359477124};
constexpr double kDigamma[] = {
    -0.08333333333333333, 0.008333333333333333, -0.003968253968253968, 0.004166666666666667, -0.007575757575757576,
    0.02109279609279609, -0.08333333333333334, 0.4432598039215686};
constexpr double kTrigamma[] = {
    0.16666666666666666, -0.03333333333333333, 0.023809523809523808, -0.03333333333333333, 0.07575757575757576,
    -0.2531135531135531, 1.1666666666666667, -7.092156862745098, 54.971177944862156, -529.1242424242424};

constexpr double kLarge = 10.0, kHalfLogTwoPi = 0.91893853320467274178, kLogPi = 1.14472988584940017414;

template <class T> struct LogGamma {
    static constexpr auto near = powers<terms<T>(20, 11)>(kLogGamma);
};

// 1 - x of numbers below 0.
RL_INLINE void mirror(const double *v, double *size, int n) {
#pragma omp simd
    for (int i = 0; i < n; ++i) size[i] = choose(v[i] < 0.0, 1 - v[i], v[i]);
}
constexpr auto is_below = [](double x) { return x < 0.0; };
constexpr auto is_small = [](double x) { return x < kLarge; };
constexpr auto is_large = [](double x) { return !(x < kLarge); };

// Of numbers from 0 to 10, which are moved to 2 + z; they change by 1, so that what is left of those beside 1 and 2 is exact.
template <class T> RL_INLINE double log_gamma_small(double x) {
    double z = x, above = 1;
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) {
        const bool high = z > 2.5;
        z = choose(high, z - 1, z);
        above *= choose(high, z, 1.0);
    }
    const bool low = x < 1.5, lowest = x < 0.5;
    const double below = x * choose(lowest, x + 1, 1.0);
    z -= choose(lowest, 0.0, choose(low, 1.0, 2.0));
    const double rest = rl::log(choose(low, below, above));
    return z * horner(LogGamma<T>::near.c, 2 * z) + choose(low, -rest, rest);
}

template <class T> RL_INLINE double log_gamma_large(double x) {
    const double inverse = 1 / x, series = first<terms<T>(8, 4)>(kStirling, inverse * inverse) * inverse;
    return choose(x == kInfinity, x, (x - 0.5) * log_of_normal(x) - x + kHalfLogTwoPi + series);
}

template <class T> static void lgamma(const double *v, double *r, int n) {
    double size[kBlock];
    mirror(v, size, n);
    where(size, r, n, is_small, [](double x, double) { return log_gamma_small<T>(x); });
    where(size, r, n, is_large, [](double x, double) { return log_gamma_large<T>(x); });
    where(v, r, n, is_below, [](double x, double other) {
        const double part = std::fabs(x - std::rint(x));
        return choose(part > 0.0, kLogPi - rl::log(sine_pi(part)) - other, kInfinity);
    });
}

// psi(z) of z >= 10.
template <class T> RL_INLINE double digamma_large(double z) {
    const double inverse = 1 / z, square = inverse * inverse;
    return rl::log(z) - 0.5 * inverse + square * first<terms<T>(8, 4)>(kDigamma, square);
}

// psi(x) = psi(x + 10) - 1 / x - ... - 1 / (x + 9), of which one fraction is made.
template <class T> RL_INLINE double digamma_small(double x) {
    double above = 1, below = x;
#pragma GCC unroll 9
    for (int k = 1; k < 10; ++k) {
        above = above * (x + k) + below;
        below *= x + k;
    }
    return digamma_large<T>(x + 10) - above / below;
}

template <class T> static void digamma(const double *v, double *r, int n) {
    double size[kBlock];
    mirror(v, size, n);
    where(size, r, n, is_small, [](double x, double) { return digamma_small<T>(x); });
    where(size, r, n, is_large, [](double x, double) { return digamma_large<T>(x); });
    where(v, r, n, is_below, [](double x, double other) {
        const double part = x - std::rint(x), found = other - kPi * cosine_pi(part) / sine_pi(part);
        return choose(part == 0.0, std::numeric_limits<double>::quiet_NaN(), found);
    });
    every(v, r, n, [](double x, double found) { return choose(x == 0.0, -1 / x, found); });
}

template <class T> RL_INLINE double trigamma_large(double z) {
    const double inverse = 1 / z, square = inverse * inverse;
    return inverse + square * (0.5 + inverse * first<terms<T>(10, 5)>(kTrigamma, square));
}

// 1 / a^2 + 1 / (a + 1)^2
RL_INLINE double two_squares(double a) {
    const double b = a + 1, product = a * b;
    return (a * a + b * b) / (product * product);
}

template <class T> RL_INLINE double trigamma_small(double x) {
    const double inverse = 1 / x;
    return trigamma_large<T>(x + 9) + two_squares(x + 7) + two_squares(x + 5) + two_squares(x + 3) + two_squares(x + 1) +
           inverse * inverse;
}

template <class T> static void trigamma(const double *v, double *r, int n) {
    double size[kBlock];
    mirror(v, size, n);
    where(size, r, n, is_small, [](double x, double) { return trigamma_small<T>(x); });
    where(size, r, n, is_large, [](double x, double) { return trigamma_large<T>(x); });
    where(v, r, n, is_below, [](double x, double other) {
        const double part = x - std::rint(x), wave = kPi / sine_pi(part);
        return choose(part != 0.0 && part == part, wave * wave - other, kInfinity);
    });
}

}  // namespace rl

BLOCKS(lgamma)
BLOCKS(digamma)
BLOCKS(trigamma)
