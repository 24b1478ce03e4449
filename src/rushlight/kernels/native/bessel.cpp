// Modified Bessel functions of the first kind and the first slopes of those of order 1, by their power series up to 8 and beyond
// by the series of reference/bessel.py; the slope of sinc, after reference/slopes.py.
#include "special.h"

namespace rl {

// The root of x times e^-x I_0(x) and e^-x I_1(x) in 16 / x - 1, x > 8.
constexpr double kI0Far[] = {
    0.4022452055070544, 0.0033691164782556943, 6.889758346916825e-05, 2.8913705208347567e-06, 2.0489185894690638e-07,
    2.266668990498178e-08, 3.3962320257083865e-09, 4.94060238822497e-10, 1.1889147107846439e-11, -3.1499165279632416e-11,
    -1.3215811840447713e-11, -1.7941785315068062e-12, 7.180124451383666e-13, 3.8527783827421426e-13, 1.54008621752141e-14,
    -4.150569347287222e-14, -9.554846698828307e-15, 3.8116806693526224e-15, 1.7725601330565263e-15, -3.425485619677219e-16,
    -2.8276239805165836e-16, 3.461222867697461e-17, 4.46562142029676e-17, -4.830504485944182e-18, -7.233180487874754e-18,
    9.921475412173699e-19, 1.193650890845982e-18};
constexpr double kI1Far[] = {
    0.38928811750914005, -0.009761097491361469, -0.00011058893876262371, -3.882564808877691e-06, -2.512236237870209e-07,
    -2.6314688468895196e-08, -3.835380385964237e-09, -5.589743462196584e-10, -1.8974958123505413e-11,
    3.2526035830154884e-11, 1.4125807436613782e-11, 2.0356285441470896e-12, -7.198551776245908e-13, -4.0835511110921974e-13,
    -2.1015418427726643e-14, 4.272440016711951e-14, 1.0420276984128802e-14, -3.8144030724370075e-15,
    -1.8803547755107825e-15, 3.3082023109209285e-16, 2.96262899764595e-16, -3.209525921993424e-17, -4.6503053684893586e-17,
    4.414348323071708e-18, 7.517296310842105e-18, -9.314178867326884e-19, -1.242193275194891e-18};

template <class T> struct Far {
    static constexpr auto zero = powers<terms<T>(27, 12)>(kI0Far), one = powers<terms<T>(27, 12)>(kI1Far);
};

// 1 / (k! (k + order)!), k < N.
template <int N> constexpr Powers<N> inverse_factorials(int order) {
    Powers<N> out = {};
    long double term = 1;
    for (int k = 0; k < N; ++k) {
        out.c[k] = (double)term;
        term /= (k + 1.0L) * (k + 1 + order);
    }
    return out;
}
template <class T> struct Near {
    static constexpr auto zero = inverse_factorials<terms<T>(24, 19)>(0), one = inverse_factorials<terms<T>(24, 19)>(1);
};

// I_0(x) and I_1(x) / x, |x| <= 8: all terms have one sign.
template <class T> RL_INLINE double near_zero(double x) { return horner(Near<T>::zero.c, 0.25 * x * x); }
template <class T> RL_INLINE double near_one(double x) { return 0.5 * horner(Near<T>::one.c, 0.25 * x * x); }

constexpr auto is_near = [](double x) { return !(std::fabs(x) > 8.0); };
constexpr auto is_far = [](double x) { return std::fabs(x) > 8.0; };
RL_INLINE double at_far(double x) { return 16 / std::fabs(x) - 1; }

template <class T> RL_INLINE double far_zero(double x) { return horner(Far<T>::zero.c, at_far(x)) / std::sqrt(std::fabs(x)); }
template <class T> RL_INLINE double far_one(double x) { return horner(Far<T>::one.c, at_far(x)) / std::sqrt(std::fabs(x)); }

// A scaled function times e^|x|, in two steps, so that it overflows no earlier than the result.
RL_INLINE double grown(double scaled, double x) {
    const double half = rl::exp(std::fabs(x) * 0.5);
    return choose(std::fabs(x) == kInfinity, std::copysign(kInfinity, scaled), scaled * half * half);
}

template <class T> static void i0e(const double *v, double *r, int n) {
    where(v, r, n, is_near, [](double x, double) { return near_zero<T>(x) * exp_for<T>(-std::fabs(x)); });
    where(v, r, n, is_far, [](double x, double) { return far_zero<T>(x); });
}

template <class T> static void i1e(const double *v, double *r, int n) {
    where(v, r, n, is_near, [](double x, double) { return x * near_one<T>(x) * exp_for<T>(-std::fabs(x)); });
    where(v, r, n, is_far, [](double x, double) { return std::copysign(far_one<T>(x), x); });
}

template <class T> static void i0(const double *v, double *r, int n) {
    where(v, r, n, is_near, [](double x, double) { return near_zero<T>(x); });
    where(v, r, n, is_far, [](double x, double) { return grown(far_zero<T>(x), x); });
}

template <class T> static void i1(const double *v, double *r, int n) {
    where(v, r, n, is_near, [](double x, double) { return x * near_one<T>(x); });
    where(v, r, n, is_far, [](double x, double) { return grown(std::copysign(far_one<T>(x), x), x); });
}

// I_1' = I_0 - I_1 / x.
template <class T> static void i1_first_slope(const double *v, double *r, int n) {
    where(v, r, n, is_near, [](double x, double) { return near_zero<T>(x) - near_one<T>(x); });
    where(v, r, n, is_far, [](double x, double) { return grown(far_zero<T>(x) - far_one<T>(x) / std::fabs(x), x); });
}

// I_0 - I_1 / x - I_1 of the scaled ones; far out, where that cancels, the slope of the series.
template <class T> static void i1e_first_slope(const double *v, double *r, int n) {
    where(v, r, n, is_near, [](double x, double) {
        return (near_zero<T>(x) - (1 + std::fabs(x)) * near_one<T>(x)) * exp_for<T>(-std::fabs(x));
    });
    where(v, r, n, is_far, [](double x, double) {
        const double size = std::fabs(x), at = at_far(x);
        const auto &c = Far<T>::one.c;
        constexpr int count = sizeof c / sizeof *c;
        double value = c[count - 1], slope = 0;
#pragma GCC unroll 32
        for (int k = count - 2; k >= 0; --k) slope = slope * at + value, value = value * at + c[k];
        return -(0.5 * value + (at + 1) * slope) / (size * std::sqrt(size));
    });
}

// (sin t / t)' times pi, t = pi x: by its powers near 0.
template <class T> static void sinc_first_slope(const double *v, double *r, int n) {
    every(v, r, n, [](double x, double) {
        const double whole = std::rint(x), part = x - whole, odd = whole - 2 * std::rint(0.5 * whole), t = kPi * x;
        const double sign = choose(odd != 0.0, -1.0, 1.0);
        return sign * kPi * (cosine_pi(part) - sine_pi(part) / t) / t;
    });
    where(v, r, n, [](double x) { return std::fabs(x) < 0.95; }, [](double x, double) {
        const double t = kPi * x, z = t * t;
        double p = 0;
#pragma GCC unroll 16
        for (int k = terms<T>(14, 9); k > 0; --k) p = 1 - p * z * (1.0 / (2 * k * (2 * k + 3)));
        return p * t * (-kPi / 3);
    });
}

}  // namespace rl

BLOCKS(i0)
BLOCKS(i0e)
BLOCKS(i1)
BLOCKS(i1e)
BLOCKS(i1_first_slope)
BLOCKS(i1e_first_slope)
BLOCKS(sinc_first_slope)
