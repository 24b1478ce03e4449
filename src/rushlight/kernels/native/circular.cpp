// Sines and cosines of float64: NumPy asks the C library for one after the other.
#include "maps.h"

namespace rl {
namespace {

constexpr double kFar = 1647099.0;  // 2^20 pi / 2: up to here products of multiples with the first two parts of pi / 2 are exact
constexpr long kTogether = 256;     // numbers between two looks for such as lie farther
// 1 / 3!, 1 / 5!, ... and 1 / 2!, 1 / 4!, ..., with the signs of the series.
constexpr double kSine[] = {-1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800.0, -1.0 / 1307674368000.0,
                            1.0 / 355687428096000.0};
constexpr double kCosine[] = {1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600.0, -1.0 / 87178291200.0,
                              1.0 / 20922789888000.0, -1.0 / 6402373705728000.0};

// sin x, or cos x where `ahead` is 1, of |x| up to kFar. x = n pi / 2 + r + low, pi / 2 in three parts (Cody and Waite, 1980).
RL_INLINE double sine(double x, uint64_t ahead) {
    const double t = x * 0.63661977236758134308 + kWholeLong, n = t - kWholeLong;
    const double first = x - n * 1.57079632673412561417e+00, second = n * 6.07710050630396597660e-11;
    const double r = first - second, low = ((first - r) - second) - n * 2.02226624879595063154e-21, z = r * r;
    const double s = r + (r * z * horner(kSine, z) + low * (1.0 - 0.5 * z));
    const double half = 0.5 * z, c = 1.0 - half;
    const double e = c + (((1.0 - c) - half) + (z * z * horner(kCosine, z) - r * low));
    const uint64_t quarter = bits<uint64_t>(t) + ahead;
    const double found = choose(quarter & 1, e, s);
    return choose((x == 0.0) & !ahead, x, bits<double>(bits<uint64_t>(found) ^ (quarter & 2) << 62));
}

void some(const double *x, double *o, long n, bool cosine) {
    double given[kTogether];
    bool far = false;
#pragma omp simd reduction(| : far)
    for (long i = 0; i < n; ++i) {
        given[i] = x[i];
        far |= std::fabs(x[i]) > kFar;
    }
#pragma omp simd
    for (long i = 0; i < n; ++i) o[i] = sine(given[i], cosine);
    for (long i = 0; far && i < n; ++i)
        if (std::fabs(given[i]) > kFar) o[i] = cosine ? std::cos(given[i]) : std::sin(given[i]);
}

void all(const double *x, double *o, long n, bool cosine) {
    parallel_for(n, kGrain / 4, [=](long begin, long end) {
        for (long i = begin; i < end; i += kTogether) some(x + i, o + i, i + kTogether < end ? kTogether : end - i, cosine);
    });
}

}  // namespace
}  // namespace rl

#define RL_CIRCULAR(NAME, COSINE)                                         \
    RL_EXPORT void rl_##NAME##_bytes(Array *x_, Array *o_, long n) {      \
        rl::Call call(#NAME);                                             \
        const double *x = call.pair_in<double>("input", x_, n);           \
        double *o = call.pair_out<double>("out", o_, n);                  \
        call.run([=] { rl::all(x, o, n, COSINE); });                      \
    }
RL_CIRCULAR(sines, false)
RL_CIRCULAR(cosines, true)
