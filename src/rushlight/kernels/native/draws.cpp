// Numbers that are drawn until one is accepted: of the gamma, Poisson and binomial distributions.  Uniform numbers are of 53 bits, normal ones
// those of Box and Muller, in pairs of which the second waits.
#include <cmath>

#include "twister.h"

namespace rl {
namespace {

constexpr double kPi = 3.14159265358979323846;

struct Source {
    Twister *t;
    double *waiting;  // a normal number, and whether it is one

    uint32_t word() {
        if (t->position == kWords) {
            twist(t->words);
            t->position = 0;
        }
        return tempered(t->words[t->position++]);
    }

    double uniform() {
        const uint64_t high = word() & 0x1fffffu, low = word();
        return (double)(int64_t)(high << 32 | low) * 0x1p-53;
    }

    double normal() {
        if (waiting[1] != 0) {
            waiting[1] = 0;
            return waiting[0];
        }
        const double angle = 2 * kPi * uniform(), radius = std::sqrt(-2 * std::log1p(-uniform()));
        waiting[0] = radius * std::sin(angle), waiting[1] = 1;
        return radius * std::cos(angle);
    }
};

double normal(Source &s, double) { return s.normal(); }

// The logarithm of a gamma variable of rate 1: Marsaglia and Tsang (2000), of a shape below 1 by one more.
double log_gamma(Source &s, double shape) {
    if (!(shape > 0)) return -INFINITY;
    double boost = 0;
    if (shape < 1) boost = std::log(1 - s.uniform()) / shape, shape += 1;
    const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
    for (;;) {
        double x, y;
        do x = s.normal(), y = 1 + c * x;
        while (y <= 0);
        const double v = y * y * y, u = 1 - s.uniform(), xx = x * x;
        if (u < 1 - 0.0331 * xx * xx || std::log(u) < 0.5 * xx + d * (1 - v + std::log(v))) return std::log(d * v) + boost;
    }
}

// A Poisson variable: below a rate of 10 by products of uniform numbers (Knuth), else Hormann's PTRS (1993).
double poisson(Source &s, double rate) {
    if (rate < 10) {
        const double end = std::exp(-rate);
        double product = 1, count = 0;
        if (rate == 0) return 0;
        while ((product *= s.uniform()) > end) ++count;
        return count;
    }
    if (std::isinf(rate)) return rate;
    const double log_rate = std::log(rate), b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b;
    const double inverse = 1.1239 + 1.1328 / (b - 3.4), inside = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
        const double u = s.uniform() - 0.5, v = s.uniform(), margin = 0.5 - std::fabs(u);
        const double k = std::floor((2 * a / margin + b) * u + rate + 0.43);
        if (margin >= 0.07 && v <= inside) return k;
        if (k < 0 || (margin < 0.013 && v > margin)) continue;
        if (std::log(v) + std::log(inverse) - std::log(a / (margin * margin) + b) <= -rate + k * log_rate - std::lgamma(k + 1))
            return k;
    }
}

// What Stirling's formula lacks of log(k!).
double stirling_rest(double k) {
    static const double first[] = {0.0810614667953272,  0.0413406959554092,  0.0276779256849983, 0.02079067210376509,
                                   0.0166446911898211,  0.0138761288230707,  0.0118967099458917, 0.010411265261972,
                                   0.00925546218271273, 0.00833056343336287};
    if (k <= 9) return first[(int)k];
    const double square = (k + 1) * (k + 1);
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// Successes of `n` trials by the waiting times between them.
double by_waiting(Source &s, double n, double p) {
    const double log_failure = std::log1p(-p);
    for (double trials = 0, count = 0;; ++count)
        if ((trials += std::ceil(std::log(s.uniform()) / log_failure)) > n) return count;
}

// The same by Hormann's BTRS (1993), where np is 10 or more and p at most 1/2.
double by_rejection(Source &s, double n, double p) {
    const double deviation = std::sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p;
    const double c = n * p + 0.5, inside = 0.92 - 4.2 / b, odds = p / (1 - p), alpha = (2.83 + 5.1 / b) * deviation;
    const double mode = std::floor((n + 1) * p);
    for (;;) {
        const double u = s.uniform() - 0.5, v = s.uniform(), margin = 0.5 - std::fabs(u);
        const double k = std::floor((2 * a / margin + b) * u + c);
        if (margin >= 0.07 && v <= inside) return k;
        if (k < 0 || k > n) continue;
        const double bound = (mode + 0.5) * std::log((mode + 1) / (odds * (n - mode + 1))) +
                             (n + 1) * std::log((n - mode + 1) / (n - k + 1)) +
                             (k + 0.5) * std::log(odds * (n - k + 1) / (k + 1)) + stirling_rest(mode) +
                             stirling_rest(n - mode) - stirling_rest(k) - stirling_rest(n - k);
        if (std::log(v * alpha / (a / (margin * margin) + b)) <= bound) return k;
    }
}

double binomial(Source &s, double n, double p) {
    if (!(n > 0 && p > 0)) return 0;
    if (p >= 1) return n;
    const double less = p <= 0.5 ? p : 1 - p;
    const double count = n * less >= 10 ? by_rejection(s, n, less) : by_waiting(s, n, less);
    return p <= 0.5 ? count : n - count;
}

}  // namespace
}  // namespace rl

#define RL_DRAWN(NAME, FUNCTION)                                                                                  \
    RL_EXPORT void rl_##NAME##_bytes(uint64_t state, Array *waiting_, Array *values_, long n) {                   \
        rl::Call call(#NAME);                                                                                     \
        double *waiting = call.out<double>("waiting", waiting_, 2), *x = call.out<double>("values", values_, n);  \
        call.run([=] {                                                                                            \
            rl::Source s{(rl::Twister *)state, waiting};                                                          \
            for (long i = 0; i < n; ++i) x[i] = rl::FUNCTION(s, x[i]);                                            \
        });                                                                                                       \
    }

RL_DRAWN(normals, normal)
RL_DRAWN(log_gammas, log_gamma)
RL_DRAWN(poissons, poisson)

RL_EXPORT void rl_binomials_bytes(uint64_t state, Array *counts_, Array *chances_, long n) {
    rl::Call call("binomials");
    double *x = call.out<double>("counts", counts_, n);
    const double *p = call.in<double>("chances", chances_, n);
    call.run([=] {
        double none[2] = {};
        rl::Source s{(rl::Twister *)state, none};
        for (long i = 0; i < n; ++i) x[i] = rl::binomial(s, x[i], p[i]);
    });
}
