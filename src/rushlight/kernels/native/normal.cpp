// Functions of the normal distribution, after reference/normal.py: erfcx by a series in (x - 3.75) / (x + 3.75) (Schonfelder,
// Mathematics of Computation 32, 1978), the inverses by Wichura's algorithm AS 241 (Applied Statistics 37, 1988).
// Coefficients of series were computed in 60 digits by tools/fit_polynomials.py.
#include "special.h"

namespace rl {

// Of (1 + 2 x) e^(x^2) erfc(x), and of -(1 + 2 x)^2 times the slope of e^(x^2) erfc(x), x >= 0, in (x - 3.75) / (x + 3.75).
constexpr double kErfcx[] = {
    1.1775789345674017, -0.004590054580646478, -0.08424913336651792, 0.05920993999819189, -0.026658668435305753,
    0.009074997670705265, -0.002413163540417608, 0.0004907758365258086, -6.916973302501207e-05, 4.13902798607301e-06,
    7.74038306619849e-07, -2.1886401049234397e-07, 1.076499946567091e-08, 4.521959811218287e-09, -7.754400208831351e-10,
    -6.318088340886684e-11, 2.86879501093067e-11, 1.9455868545777347e-13, -9.65469674843344e-13, 3.25254814814874e-14,
    3.3478119482868056e-14, -1.864562880419313e-15, -1.2507950530688648e-15, 7.418235256624044e-17, 5.068148904796111e-17,
    -2.2370566594359995e-18, -2.187342944303018e-18};
constexpr double kErfcxSlope[] = {
    2.220602224347926, 0.3381491578548434, -0.4780647072401491, 0.22991599476375216, -0.058506716560431084,
    0.00017975876764081186, 0.0073446428848319605, -0.003827223400331194, 0.0011722202970178505, -0.00023037555021512273,
    2.2114134929734502e-05, 2.1859658381137526e-06, -1.049150448053633e-06, 9.04530806168121e-08, 2.2177778414245705e-08,
    -5.516129335919508e-09, -2.433302233708413e-10, 2.1693995513380136e-10, -5.366283225603341e-12, -7.954006687162879e-12,
    5.362131784689535e-13, 3.028340588750968e-13, -2.7807253862696932e-14, -1.249716092979985e-14, 1.1897640812263567e-15,
    5.617171355125805e-16, -4.3130464605649346e-17, -2.6922363729620375e-17, 1.0823413430069776e-18};

// Of the quantile's fractions, above and below the line: around 1/2, in the tails, and far out in them.
constexpr double kCentreAbove[] = {
    3.3871328727963665, 133.14166789178438, 1971.5909503065513, 13731.69376550946, 45921.95393154987, 67265.7709270087,
    33430.57558358813, 2509.0809287301227};
constexpr double kCentreBelow[] = {
    1.0, 42.31333070160091, 687.1870074920579, 5394.196021424751, 21213.794301586597, 39307.89580009271, 28729.085735721943,
    5226.495278852854};
constexpr double kNearAbove[] = {
    1.4234371107496835, 4.630337846156546, 5.769497221460691, 3.6478483247632045, 1.2704582524523684, 0.2417807251774506,
    0.022723844989269184, 0.0007745450142783414};
constexpr double kNearBelow[] = {
    1.0, 2.053191626637759, 1.6763848301838038, 0.6897673349851, 0.14810397642748008, 0.015198666563616457,
    0.0005475938084995345, 1.0507500716444169e-09};
constexpr double kFarAbove[] = {
    6.657904643501103, 5.463784911164114, 1.7848265399172913, 0.29656057182850487, 0.026532189526576124,
    0.0012426609473880784, 2.7115555687434876e-05, 2.0103343992922881e-07};
constexpr double kFarBelow[] = {
    1.0, 0.599832206555888, 0.1369298809227358, 0.014875361290850615, 0.0007868691311456133, 1.8463183175100548e-05,
    1.421511758316446e-07, 2.0442631033899397e-15};

constexpr double kRootHalf = 0.70710678118654752440;
constexpr double kTwoOverRootPi = 1.12837916709551257390;

template <class T> struct Erfcx {
    static constexpr auto value = powers<terms<T>(27, 16)>(kErfcx);
    static constexpr auto slope = powers<terms<T>(29, 18)>(kErfcxSlope);
};

// e^(x^2) erfc(x) of x >= 0, and its slope.
template <class T> RL_INLINE double scaled_tail(double x) {
    if (sizeof(T) == 8) return horner(Erfcx<T>::value.c, 1 - 7.5 / (x + 3.75)) / (1 + 2 * x);
    x = x > 1e100 ? 1e100 : x;
    const double a = x + 3.75, b = 1 + 2 * x, inverse = 1 / (a * b);  // which spares a division
    return horner(Erfcx<T>::value.c, 1 - 7.5 * b * inverse) * (a * inverse);
}
template <class T> RL_INLINE double scaled_tail_slope(double x) {
    const double width = 1 + 2 * x;
    return -horner(Erfcx<T>::slope.c, 1 - 7.5 / (x + 3.75)) / width / width;
}

// e^(sign x^2) of x >= 0: the square of the upper half of x's digits is exact, and what is left of x^2 small.
template <class T> RL_INLINE double exp_square(double x, double sign) {
    const double most = sizeof(T) == 8 ? 30.0 : 26.0;  // infinite or 0 there
    x = x > most ? most : x;
    if (sizeof(T) == 4) return exp_for<T>(sign * x * x);
    const double high = bits<double>(bits<uint64_t>(x) & 0xfffffffff8000000ull), rest = sign * (x - high) * (x + high);
    return rl::exp(sign * high * high) * (1 + rest * (1 + rest * (0.5 + rest * (1.0 / 6))));
}

template <class T> RL_INLINE double erfc_of(double x) {
    const double size = std::fabs(x), z = x * x, tail = exp_square<T>(size, -1.0) * scaled_tail<T>(size);
    const double far = choose(x < 0.0, 2 - tail, tail), near = 1 - (x + x * first<terms<T>(14, 8)>(kErfSmall, z));
    return choose(size < 0.5, near, far);
}

template <class T> static void erfc(const double *v, double *r, int n) {
    every(v, r, n, [](double x, double) { return erfc_of<T>(x); });
}

template <class T> static void ndtr(const double *v, double *r, int n) {
    every(v, r, n, [](double x, double) { return 0.5 * erfc_of<T>(-x * kRootHalf); });
}

template <class T> static void erfcx(const double *v, double *r, int n) {
    every(v, r, n, [](double x, double) { return scaled_tail<T>(std::fabs(x)); });
    where(v, r, n, [](double x) { return x < 0.0; }, [](double x, double tail) {
        return 2 * exp_square<T>(-x, 1.0) - tail;
    });
}

template <class T> static void erfcx_first_slope(const double *v, double *r, int n) {
    every(v, r, n, [](double x, double) { return scaled_tail_slope<T>(std::fabs(x)); });
    where(v, r, n, [](double x) { return x < 0.0; }, [](double x, double) {
        return 2 * x * (2 * exp_square<T>(-x, 1.0) - scaled_tail<T>(-x)) - kTwoOverRootPi;
    });
}

// log(1 - q), 0 <= q < 1: the rounding of 1 - q cancels (Kahan).
RL_INLINE double log_without(double q) {
    const double u = 1 - q, d = 1 - u;
    return choose(d == 0.0, -q, log_of_normal(u) * q / choose(d == 0.0, 1.0, d));
}

template <class T> static void log_ndtr(const double *v, double *r, int n) {
    where(v, r, n, [](double x) { return !(x < -1.0); }, [](double x, double) {
        return log_without(0.5 * erfc_of<T>(x * kRootHalf));
    });
    where(v, r, n, [](double x) { return x < -1.0; }, [](double x, double) {
        const double t = x * kRootHalf;
        return rl::log(0.5 * scaled_tail<T>(-t)) - t * t;
    });
}

// How far from 0 the normal distribution has so much to one side; infinite for 0.
template <class T> static void outer_quantile(const double *tail, double *r, int n) {
    every(tail, r, n, [](double p, double) {
        const double x = std::sqrt(-rl::log(p)) - 1.6;
        return horner(kNearAbove, x) / horner(kNearBelow, x);
    });
    where(tail, r, n, [](double p) { return p < 1.388794386496402e-11; }, [](double p, double) {  // e^-25
        const double x = std::sqrt(-rl::log(p)) - 5.0;
        return choose(p == 0.0, kInfinity, horner(kFarAbove, x) / horner(kFarBelow, x));
    });
}

// The normal distribution is 1/2 + half at `scale` times r; tail(half): what is left to the nearer side.
template <class T, class H, class P> static void quantile(const double *v, double *r, int n, H half, P tail, double scale) {
    every(v, r, n, [=](double x, double) {
        const double h = half(x), t = 0.180625 - h * h;
        return scale * h * horner(kCentreAbove, t) / horner(kCentreBelow, t);
    });
    int place[kBlock], count = 0;
    double outer[kBlock], found[kBlock];
    for (int i = 0; i < n; ++i) {
        place[count] = i;
        count += std::fabs(half(v[i])) > 0.425;
    }
    for (int i = 0; i < count; ++i) outer[i] = found[i] = tail(v[place[i]]);
    outer_quantile<T>(outer, found, count);
    for (int i = 0; i < count; ++i) r[place[i]] = std::copysign(scale * found[i], half(v[place[i]]));
}

template <class T> static void erfinv(const double *v, double *r, int n) {
    quantile<T>(v, r, n, [](double y) { return 0.5 * y; }, [](double y) { return 0.5 - std::fabs(0.5 * y); }, kRootHalf);
}

template <class T> static void ndtri(const double *v, double *r, int n) {
    quantile<T>(v, r, n, [](double p) { return p - 0.5; }, [](double p) { return p < 0.5 ? p : 1 - p; }, 1.0);
}

}  // namespace rl

BLOCKS(erfc)
BLOCKS(erfcx)
BLOCKS(erfcx_first_slope)
BLOCKS(erfinv)
BLOCKS(ndtr)
BLOCKS(ndtri)
BLOCKS(log_ndtr)
