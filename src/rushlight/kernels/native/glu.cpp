// Gated linear units: rows of (outer, 2, m), whose second halves are the gates.
#include "sixteen.h"
#include "vecmath.h"

namespace rl {
namespace {

constexpr long kPart = 512;  // numbers of 16 bits that are in float32 at a time

// f(part of both halves, where it begins, how many), part by part: rows may be few and long.
template <class U, class F> void halves(const U *x, long outer, long m, F f) {
    const long step = std::min(m, kPart), parts = ceil_div(m, step);
    parallel_for(outer * parts, row_grain(4 * step), [=](long begin, long end) {
        Part<U, kPart> first, gates;
        for (long i = begin; i < end; ++i) {
            const long row = i / parts, at = i % parts * step, n = std::min(step, m - at);
            const U *a = x + row * 2 * m + at;
            f(first(a, n), gates(a + m, n), row, at, n);
        }
    });
}

template <class U, class T = WideOf<U>> void glu(const U *x, U *o, long outer, long m) {
    halves(x, outer, m, [=](const T *a, const T *b, long row, long at, long n) {
        T room[kPlain<U> ? 1 : kPart];
        U *to = o + row * m + at;
        T *out = kPlain<U> ? (T *)to : room;
#pragma omp simd
        for (long i = 0; i < n; ++i) out[i] = a[i] * sigmoid(b[i]);
        if constexpr (!kPlain<U>) narrow(out, to, n);
    });
}

template <class U, class T = WideOf<U>> void glu_backward(const U *g, const U *x, U *o, long outer, long m) {
    halves(x, outer, m, [=](const T *a, const T *b, long row, long at, long n) {
        Part<U, kPart> part;
        T room[kPlain<U> ? 1 : 2 * kPart];
        const T *d = part(g + row * m + at, n);
        U *to = o + row * 2 * m + at;
        T *of_a = kPlain<U> ? (T *)to : room, *of_b = kPlain<U> ? (T *)to + m : room + kPart;
#pragma omp simd
        for (long i = 0; i < n; ++i) {
            const T s = sigmoid(b[i]), through = d[i] * s;
            of_a[i] = through;
            of_b[i] = (1 - s) * through * a[i];
        }
        if constexpr (!kPlain<U>) narrow(of_a, to, n), narrow(of_b, to + m, n);
    });
}

}  // namespace
}  // namespace rl

#define ALL(U, S)                                                                                      \
    RL_EXPORT void rl_glu_##S(Array *x_, Array *o_, long outer, long m) {                              \
        rl::Call call("glu");                                                                          \
        const U *x = call.in<U>("input", x_, outer, 2, m);                                             \
        U *o = call.out<U>("out", o_, outer, m);                                                       \
        call.run([=] { rl::glu(x, o, outer, m); });                                                    \
    }                                                                                                  \
    RL_EXPORT void rl_glu_backward_##S(Array *g_, Array *x_, Array *o_, long outer, long m) {          \
        rl::Call call("glu_backward");                                                                 \
        const U *g = call.in<U>("gradient", g_, outer, m), *x = call.in<U>("input", x_, outer, 2, m);  \
        U *o = call.out<U>("out", o_, outer, 2, m);                                                    \
        call.run([=] { rl::glu_backward(g, x, o, outer, m); });                                        \
    }
RL_ALL(ALL)
