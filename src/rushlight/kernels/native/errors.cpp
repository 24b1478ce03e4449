// Sums of the errors of pairs of numbers, for losses: no array of errors is made.  Long sums go on in double, in an order that the
// number of pairs alone decides.
#include <memory>

#include "row_sums.h"

namespace rl {
namespace {

// The sum of f(x, t) of all pairs.
template <class U, class F> double errors(const U *x, const U *t, long n, F f) {
    using T = WideOf<U>;
    const long parts = ceil_div(n, kPiece);
    std::unique_ptr<double[]> room(new double[parts]);
    double *sums = room.get();
    parallel_for(parts, 1, [=](long begin, long end) {
        for (long i = begin; i < end; ++i) {
            const long at = i * kPiece;
            double total = 0;
            pieces2<kRun>(x + at, t + at, std::min(kPiece, n - at), [&](long, const T *a, const T *b, long some) {
                T part = 0;
#pragma omp simd reduction(+ : part)
                for (long k = 0; k < some; ++k) part += f(a[k], b[k]);
                total += part;
            });
            sums[i] = total;
        }
    });
    double total = 0;
    for (long i = 0; i < parts; ++i) total += sums[i];
    return total;
}

template <class T> RL_INLINE T size_of(T v) { return v < 0 ? -v : v; }

template <class T> RL_INLINE T huber(T d, T delta) {
    const T size = size_of(d), near = size > delta ? delta : size;
    return near * (size - T(0.5) * near);
}

}  // namespace
}  // namespace rl

#define ERRORS(NAME, EXPR, U, S)                                                                               \
    RL_EXPORT void rl_##NAME##_##S(Array *x_, Array *t_, Array *total_, long n, double delta) {                \
        rl::Call call(#NAME);                                                                                  \
        using T = rl::WideOf<U>;                                                                               \
        const U *x = call.in<U>("input", x_, n), *t = call.in<U>("target", t_, n);                             \
        double *total = call.out<double>("total", total_, 1);                                                  \
        (void)delta;                                                                                           \
        call.run([=] { *total = rl::errors(x, t, n, [=](T v, T w) { const T d = v - w; return EXPR; }); });    \
    }
#define ALL(U, S)                                  \
    ERRORS(squared_errors, d * d, U, S)            \
    ERRORS(absolute_errors, rl::size_of(d), U, S)  \
    ERRORS(huber_errors, rl::huber(d, (T)delta), U, S)
RL_ALL(ALL)
