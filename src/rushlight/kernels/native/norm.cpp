// Layer, RMS, group and batch normalisation with gradients.
//
// Means are taken first and deviations from them second, while the row lies in cache, and the mean once more from
// the deviations where these are lost beside it: as exact as Welford's way and faster.  Gradients of weights are summed in blocks of rows that depend on the shape alone, so that
// the result does not depend on the number of threads.
#include <cmath>
#include <limits>

#include "memory.h"
#include "reduce.h"
#include "sixteen.h"

namespace rl {

constexpr long kRun = 2048;  // elements added up in their own precision before the sum goes on in double

// U: what numbers are in memory, of 16 bits perhaps; T: what is computed with, in which weights and statistics are.
template <class U, class F> RL_INLINE double sum_of(const U *x, long n, F f) {
    double total = 0;
    pieces<kRun>(x, n, [&](long, const WideOf<U> *v, long some) {
        WideOf<U> s = 0;
#pragma omp simd reduction(+ : s)
        for (long i = 0; i < some; ++i) s += f(v[i]);
        total += s;
    });
    return total;
}

template <class U> RL_INLINE double sum(const U *x, long n) {
    return sum_of(x, n, [](WideOf<U> v) { return v; });
}

template <class U> RL_INLINE double sum_squares(const U *x, WideOf<U> mean, long n) {
    return sum_of(x, n, [=](WideOf<U> v) { return (v - mean) * (v - mean); });
}

template <class U> RL_INLINE double sum_deviations(const U *x, WideOf<U> mean, long n) {
    return sum_of(x, n, [=](WideOf<U> v) { return v - mean; });
}

// Whether n elements lie so near to their mean that its rounding counts: a constant is to have no variance.
template <class T> RL_INLINE bool beside_mean(double squares, double mean, double n) {
    return squares < mean * mean * n * std::numeric_limits<T>::epsilon();
}

// The squared deviations from the mean, summed; makes the mean exact where they are lost beside it.
template <class U> RL_INLINE double spread(const U *x, WideOf<U> &mean, long n) {
    double squares = sum_squares(x, mean, n);
    if (!beside_mean<WideOf<U>>(squares, mean, n)) return squares;
    mean = (WideOf<U>)(mean + sum_deviations(x, mean, n) / n);
    return sum_squares(x, mean, n);
}

// o = (x - mean) * rstd * w + b, w and b per element or absent
template <class U, class T> static void affine_row(const U *x, U *o, T mean, T rstd, const T *w, const T *b, long n) {
    if (w && b) turn(x, o, n, [=](long i, T v) { return (v - mean) * rstd * w[i] + b[i]; });
    else if (w) turn(x, o, n, [=](long i, T v) { return (v - mean) * rstd * w[i]; });
    else if (b) turn(x, o, n, [=](long i, T v) { return (v - mean) * rstd + b[i]; });
    else turn(x, o, n, [=](long, T v) { return (v - mean) * rstd + T(0); });
}

// Rows of length C; without kCenter the mean is taken to be 0 (RMS norm).
template <class U, bool kCenter, class T = WideOf<U>>
static void row_norm(const U *x, const T *w, const T *b, U *o, T *mean, T *rstd, long R, long C, double eps) {
    parallel_for(R, row_grain(C), [=](long begin, long end) {
        for (long r = begin; r < end; ++r) {
            const U *row = x + r * C;
            T m = kCenter ? (T)(sum(row, C) / C) : T(0);
            T s = T(1) / std::sqrt((T)((kCenter ? spread(row, m, C) : sum_squares(row, m, C)) / C) + T(eps));
            if (kCenter) mean[r] = m;
            rstd[r] = s;
            affine_row(row, o + r * C, m, s, w, b, C);
        }
    });
}

template <class U, class T = WideOf<U>> struct RowGrads {
    const U *g, *x;
    const T *mean, *rstd, *w;
    U *gx;
    long C;

    // One row: its part of the weights' gradients if wanted, its input gradient if wanted, which may be written over g.
    template <bool kCenter> void row(long r, T *gw, T *gb) const {
        const U *d = g + r * C, *v = x + r * C;
        T m = kCenter ? mean[r] : T(0), s = rstd[r];
        if (gw)
            pieces2<kRun>(d, v, C, [&](long at, const T *p, const T *q, long n) {
                T *to = gw + at;
#pragma omp simd
                for (long i = 0; i < n; ++i) to[i] += p[i] * ((q[i] - m) * s);
            });
        if (gb)
            pieces<kRun>(d, C, [&](long at, const T *p, long n) {
                T *to = gb + at;
#pragma omp simd
                for (long i = 0; i < n; ++i) to[i] += p[i];
            });
        if (gx) input<kCenter>(d, v, gx + r * C, m, s);
    }

    template <bool kCenter> void input(const U *d, const U *v, U *o, T m, T s) const {
        Part<U, kRun> wide_d, wide_v;
        const T *by = w;
        double first = 0, second = 0;
        for (long at = 0; at < C; at += kRun) {  // not in a lambda, where GCC leaves two sums scalar
            const long n = C - at < kRun ? C - at : kRun;
            const T *a = wide_d(d + at, n), *c = wide_v(v + at, n);
            T p = 0, q = 0;
            if (by) {
                const T *scale = by + at;
#pragma omp simd reduction(+ : p, q)
                for (long i = 0; i < n; ++i) p += a[i] * scale[i], q += a[i] * scale[i] * (c[i] - m);
            } else {
#pragma omp simd reduction(+ : p, q)
                for (long i = 0; i < n; ++i) p += a[i], q += a[i] * (c[i] - m);
            }
            first += p, second += q;
        }
        T a = kCenter ? (T)(first / C) : T(0), b = (T)second * s * s / T(C);
        if (by) turn2(d, v, o, C, [=](long i, T p, T q) { return s * (p * by[i] - a - (q - m) * b); });
        else turn2(d, v, o, C, [=](long, T p, T q) { return s * (p - a - (q - m) * b); });
    }
};

template <class U, bool kCenter, class T = WideOf<U>> static void row_norm_backward(RowGrads<U> k, T *gw, T *gb, long R) {
    long C = k.C, blocks = R * C / 32768;
    blocks = blocks < 1 ? 1 : blocks > 64 ? 64 : blocks;
    long rows = (R + blocks - 1) / blocks;
    Scratch<T> parts((gw || gb) ? 2 * blocks * C : 0);
    T *part = parts.get();
    std::fill(part, part + parts.size(), T(0));
    parallel_for(blocks, 1, [=](long begin, long end) {
        for (long b = begin; b < end; ++b)
            for (long r = b * rows; r < R && r < (b + 1) * rows; ++r)
                k.template row<kCenter>(r, gw ? part + 2 * b * C : nullptr, gb ? part + (2 * b + 1) * C : nullptr);
    });
    for (int which = 0; which < 2; ++which) {
        T *to = which ? gb : gw;
        if (!to) continue;
        for (long i = 0; i < C; ++i) to[i] = 0;
        for (long b = 0; b < blocks; ++b)
            for (long i = 0; i < C; ++i) to[i] += part[(2 * b + which) * C + i];
    }
}

// x: (N, G, D, S), D channels a group, S positions a channel; w, b: (G * D)
template <class U, class T = WideOf<U>>
static void group_norm(const U *x, const T *w, const T *b, U *o, T *mean, T *rstd, long N, long G, long D, long S,
                       double eps) {
    parallel_for(N * G, row_grain(D * S), [=](long begin, long end) {
        for (long r = begin; r < end; ++r) {
            const U *row = x + r * D * S;
            T m = (T)(sum(row, D * S) / (D * S));
            T s = T(1) / std::sqrt((T)(spread(row, m, D * S) / (D * S)) + T(eps));
            mean[r] = m;
            rstd[r] = s;
            for (long d = 0; d < D; ++d) {
                long c = r % G * D + d;
                T scale = w ? s * w[c] : s, shift = b ? b[c] : T(0);
                turn(row + d * S, o + r * D * S + d * S, S, [=](long, T v) { return (v - m) * scale + shift; });
            }
        }
    });
}

// Two sums over a channel's positions: of g, and of g * (x - mean).
template <class U, class T = WideOf<U>>
RL_INLINE void channel_sums(const U *g, const U *x, T mean, long S, T &plain, T &dot) {
    Part<U, kRun> wide_g, wide_x;
    double first = 0, second = 0;
    for (long at = 0; at < S; at += kRun) {
        const long n = S - at < kRun ? S - at : kRun;
        const T *d = wide_g(g + at, n), *v = wide_x(x + at, n);
        T p = 0, q = 0;
#pragma omp simd reduction(+ : p, q)
        for (long i = 0; i < n; ++i) p += d[i], q += d[i] * (v[i] - mean);
        first += p, second += q;
    }
    plain = (T)first, dot = (T)second;
}

template <class U, class T = WideOf<U>>
static void group_norm_backward(const U *g, const U *x, const T *mean, const T *rstd, const T *w, U *gx, T *gw, T *gb,
                                long N, long G, long D, long S) {
    Scratch<T> sums(2 * N * G * D);
    T *plain = sums.get(), *dot = plain + N * G * D;
    parallel_for(N * G, row_grain(D * S), [=](long begin, long end) {
        for (long r = begin; r < end; ++r) {
            T m = mean[r], s = rstd[r];
            double first = 0, second = 0;
            for (long d = 0; d < D; ++d) {
                long at = r * D + d;
                channel_sums(g + at * S, x + at * S, m, S, plain[at], dot[at]);
                T scale = w ? w[r % G * D + d] : T(1);
                first += plain[at] * scale, second += dot[at] * scale;
            }
            if (!gx) continue;
            T a = (T)(first / (D * S)), b = (T)second * s * s / T(D * S);
            for (long d = 0; d < D; ++d) {
                long at = (r * D + d) * S;
                T scale = w ? w[r % G * D + d] : T(1);
                turn2(g + at, x + at, gx + at, S, [=](long, T d, T v) { return s * (d * scale - a - (v - m) * b); });
            }
        }
    });
    for (long c = 0; c < G * D; ++c) {
        T p = 0, q = 0;
        for (long n = 0; n < N; ++n) {
            long at = n * G * D + c;
            p += plain[at], q += dot[at] * rstd[n * G + c / D];
        }
        if (gw) gw[c] = q;
        if (gb) gb[c] = p;
    }
}

// --- batch norm: x (N, C, S), statistics over N and S ---

constexpr long kColumns = 64;  // channels that go down the batch together where S is 1

struct Plane {
    long N, C, S;

    // Calls f(pointer offset, length) for every contiguous run of channel c.
    template <class F> void runs(long c, F f) const {
        for (long n = 0; n < N; ++n) f((n * C + c) * S, S);
    }
};

// Mean and biased variance of `w` neighbouring columns of an (N, C) matrix.
template <class U, class T = WideOf<U>> static void column_stats(const U *x, long N, long C, long w, T *mean, T *var) {
    Part<U, kColumns> part;
    double m[kColumns] = {}, v[kColumns] = {};
    for (long n = 0; n < N; ++n) {
        const T *row = part(x + n * C, w);
#pragma omp simd
        for (long j = 0; j < w; ++j) m[j] += row[j];
    }
    for (long j = 0; j < w; ++j) m[j] /= N;
    for (long n = 0; n < N; ++n) {
        const T *row = part(x + n * C, w);
#pragma omp simd
        for (long j = 0; j < w; ++j) v[j] += (row[j] - m[j]) * (row[j] - m[j]);
    }
    for (long j = 0; j < w; ++j) mean[j] = (T)m[j], var[j] = (T)(v[j] / N);
}

template <class U, class T = WideOf<U>> static void batch_stats(const U *x, T *mean, T *var, long N, long C, long S) {
    if (S == 1) {
        long tiles = (C + kColumns - 1) / kColumns;
        parallel_for(tiles, row_grain(N * kColumns), [=](long begin, long end) {
            for (long t = begin; t < end; ++t) {
                long c = t * kColumns;
                column_stats(x + c, N, C, C - c < kColumns ? C - c : kColumns, mean + c, var + c);
            }
        });
        return;
    }
    parallel_for(C, row_grain(N * S), [=](long begin, long end) {
        for (long c = begin; c < end; ++c) {
            double m = 0, v = 0, count = (double)N * S;
            Plane plane{N, C, S};
            plane.runs(c, [&](long at, long n) { m += sum(x + at, n); });
            m /= count;
            plane.runs(c, [&](long at, long n) { v += sum_squares(x + at, (T)m, n); });
            if (beside_mean<T>(v, m, count)) {
                double off = 0;
                plane.runs(c, [&](long at, long n) { off += sum_deviations(x + at, (T)m, n); });
                m = (T)m + off / count, v = 0;
                plane.runs(c, [&](long at, long n) { v += sum_squares(x + at, (T)m, n); });
            }
            mean[c] = (T)m, var[c] = (T)(v / count);
        }
    });
}

// o = (x - mean) * rstd * w + b per channel, and 0 where that is below if positive
template <class U, class T = WideOf<U>>
static void batch_apply(const U *x, const T *mean, const T *rstd, const T *w, const T *b, U *o, long N, long C, long S,
                        bool positive) {
    if (S == 1) {
        parallel_for(N, row_grain(C), [=](long begin, long end) {
            for (long n = begin; n < end; ++n)
                turn(x + n * C, o + n * C, C, [=](long c, T v) {
                    return (v - mean[c]) * (w ? rstd[c] * w[c] : rstd[c]) + (b ? b[c] : T(0));
                });
            if (positive)
                turn(o + begin * C, o + begin * C, (end - begin) * C, [](long, T v) { return v <= 0 ? T(0) : v; });
        });
        return;
    }
    parallel_for(N * C, row_grain(S), [=](long begin, long end) {
        for (long r = begin; r < end; ++r) {
            long c = r % C;
            T m = mean[c], scale = w ? rstd[c] * w[c] : rstd[c], shift = b ? b[c] : T(0);
            const U *v = x + r * S;
            U *out = o + r * S;
            if (!positive) turn(v, out, S, [=](long, T from) { return (from - m) * scale + shift; });
            else
                turn(v, out, S, [=](long, T from) {
                    T found = (from - m) * scale + shift;
                    return found <= 0 ? T(0) : found;
                });
        }
    });
}

template <class U, class T = WideOf<U>> struct BatchGrads {
    const U *g, *x;
    const T *mean, *rstd, *w;
    U *gx;
    T *gw, *gb;
    long N, C, S;
    bool training;

    // `plain` and `dot` of channel c are known: its weight gradients, and what its input gradient needs.
    RL_MEMBER void finish(long c, double plain, double dot, T &scale, T &a, T &b) const {
        double s = rstd[c], count = (double)N * S;
        if (gw) gw[c] = (T)(dot * s);
        if (gb) gb[c] = (T)plain;
        scale = w ? rstd[c] * w[c] : rstd[c];
        a = training ? (T)(plain / count) : T(0);
        b = training ? (T)(dot * s * s / count) : T(0);
    }

    void channel(long c) const {
        double plain = 0, dot = 0;
        T m = mean[c], scale, a, b;
        Plane plane{N, C, S};
        plane.runs(c, [&](long at, long n) {
            T p, q;
            channel_sums(g + at, x + at, m, n, p, q);
            plain += p, dot += q;
        });
        finish(c, plain, dot, scale, a, b);
        if (!gx) return;
        plane.runs(c, [&](long at, long n) {
            const T over = scale, less = a, lean = b;
            if (!training) return turn(g + at, gx + at, n, [=](long, T d) { return d * over; });  // the input may be infinite
            turn2(g + at, x + at, gx + at, n, [=](long, T d, T v) { return (d - less - (v - m) * lean) * over; });
        });
    }

    void columns(long first, long width) const {
        Part<U, kColumns> wide_g, wide_x;
        double plain[kColumns] = {}, dot[kColumns] = {};
        T scale[kColumns], a[kColumns], b[kColumns];
        const T *m = mean + first;
        for (long n = 0; n < N; ++n) {
            const T *d = wide_g(g + n * C + first, width), *v = wide_x(x + n * C + first, width);
#pragma omp simd
            for (long j = 0; j < width; ++j) plain[j] += d[j], dot[j] += d[j] * (v[j] - m[j]);
        }
        for (long j = 0; j < width; ++j) finish(first + j, plain[j], dot[j], scale[j], a[j], b[j]);
        if (!gx) return;
        const T *over = scale, *less = a, *lean = b;
        for (long n = 0; n < N; ++n) {
            const long at = n * C + first;
            if (training)
                turn2(g + at, x + at, gx + at, width,
                      [=](long j, T d, T v) { return (d - less[j] - (v - m[j]) * lean[j]) * over[j]; });
            else
                turn(g + at, gx + at, width, [=](long j, T d) { return d * over[j]; });
        }
    }
};

template <class U> static void batch_norm_backward(BatchGrads<U> k) {
    if (k.S != 1) {
        parallel_for(k.C, row_grain(k.N * k.S), [=](long begin, long end) {
            for (long c = begin; c < end; ++c) k.channel(c);
        });
        return;
    }
    long tiles = (k.C + kColumns - 1) / kColumns;
    parallel_for(tiles, row_grain(k.N * kColumns), [=](long begin, long end) {
        for (long t = begin; t < end; ++t) {
            long first = t * kColumns;
            k.columns(first, k.C - first < kColumns ? k.C - first : kColumns);
        }
    });
}

}  // namespace rl

#define ALL(U, S)                                                                                              \
    RL_EXPORT void rl_layer_norm_##S(Array *x_, Array *w_, Array *b_, Array *o_, Array *mean_, Array *rstd_,   \
                                     long R, long C, double eps) {                                             \
        rl::Call call("layer_norm");                                                                           \
        using T = rl::WideOf<U>;                                                                               \
        const U *x = call.in<U>("input", x_, R, C);                                                            \
        const T *w = call.maybe_in<T>("weight", w_, C), *b = call.maybe_in<T>("bias", b_, C);                  \
        U *o = call.out<U>("out", o_, R, C);                                                                   \
        T *mean = call.out<T>("mean", mean_, R), *rstd = call.out<T>("rstd", rstd_, R);                        \
        call.run([=] { rl::row_norm<U, true>(x, w, b, o, mean, rstd, R, C, eps); });                           \
    }                                                                                                          \
    RL_EXPORT void rl_rms_norm_##S(Array *x_, Array *w_, Array *o_, Array *rstd_, long R, long C,              \
                                   double eps) {                                                               \
        rl::Call call("rms_norm");                                                                             \
        using T = rl::WideOf<U>;                                                                               \
        const U *x = call.in<U>("input", x_, R, C);                                                            \
        const T *w = call.maybe_in<T>("weight", w_, C);                                                        \
        U *o = call.out<U>("out", o_, R, C);                                                                   \
        T *rstd = call.out<T>("rstd", rstd_, R);                                                               \
        call.run([=] { rl::row_norm<U, false>(x, w, (const T *)nullptr, o, (T *)nullptr, rstd, R, C, eps); }); \
    }                                                                                                          \
    RL_EXPORT void rl_layer_norm_backward_##S(Array *g_, Array *x_, Array *mean_, Array *rstd_, Array *w_,     \
                                              Array *gx_, Array *gw_, Array *gb_, long R, long C) {            \
        rl::Call call("layer_norm_backward");                                                                  \
        using T = rl::WideOf<U>;                                                                               \
        const U *g = call.in<U>("gradient", g_, R, C), *x = call.in<U>("input", x_, R, C);                     \
        const T *mean = call.in<T>("mean", mean_, R), *rstd = call.in<T>("rstd", rstd_, R);                    \
        const T *w = call.maybe_in<T>("weight", w_, C);                                                        \
        U *gx = call.maybe_out<U>("out", gx_, R, C);                                                           \
        T *gw = call.maybe_out<T>("weight's", gw_, C), *gb = call.maybe_out<T>("bias's", gb_, C);              \
        call.run([=] { rl::row_norm_backward<U, true>({g, x, mean, rstd, w, gx, C}, gw, gb, R); });            \
    }                                                                                                          \
    RL_EXPORT void rl_rms_norm_backward_##S(Array *g_, Array *x_, Array *rstd_, Array *w_, Array *gx_,         \
                                            Array *gw_, long R, long C) {                                      \
        rl::Call call("rms_norm_backward");                                                                    \
        using T = rl::WideOf<U>;                                                                               \
        const U *g = call.in<U>("gradient", g_, R, C), *x = call.in<U>("input", x_, R, C);                     \
        const T *rstd = call.in<T>("rstd", rstd_, R), *w = call.maybe_in<T>("weight", w_, C);                  \
        U *gx = call.maybe_out<U>("out", gx_, R, C);                                                           \
        T *gw = call.maybe_out<T>("weight's", gw_, C);                                                         \
        call.run([=] {                                                                                         \
            rl::row_norm_backward<U, false>({g, x, nullptr, rstd, w, gx, C}, gw, (T *)nullptr, R);             \
        });                                                                                                    \
    }                                                                                                          \
    RL_EXPORT void rl_group_norm_##S(Array *x_, Array *w_, Array *b_, Array *o_, Array *mean_, Array *rstd_,   \
                                     long N, long G, long D, long P, double eps) {                             \
        rl::Call call("group_norm");                                                                           \
        using T = rl::WideOf<U>;                                                                               \
        const U *x = call.in<U>("input", x_, N, G, D, P);                                                      \
        const T *w = call.maybe_in<T>("weight", w_, G, D), *b = call.maybe_in<T>("bias", b_, G, D);            \
        U *o = call.out<U>("out", o_, N, G, D, P);                                                             \
        T *mean = call.out<T>("mean", mean_, N, G), *rstd = call.out<T>("rstd", rstd_, N, G);                  \
        call.run([=] { rl::group_norm<U>(x, w, b, o, mean, rstd, N, G, D, P, eps); });                         \
    }                                                                                                          \
    RL_EXPORT void rl_group_norm_backward_##S(Array *g_, Array *x_, Array *mean_, Array *rstd_, Array *w_,     \
                                              Array *gx_, Array *gw_, Array *gb_, long N, long G, long D,      \
                                              long P) {                                                        \
        rl::Call call("group_norm_backward");                                                                  \
        using T = rl::WideOf<U>;                                                                               \
        const U *g = call.in<U>("gradient", g_, N, G, D, P), *x = call.in<U>("input", x_, N, G, D, P);         \
        const T *mean = call.in<T>("mean", mean_, N, G), *rstd = call.in<T>("rstd", rstd_, N, G);              \
        const T *w = call.maybe_in<T>("weight", w_, G, D);                                                     \
        U *gx = call.maybe_out<U>("out", gx_, N, G, D, P);                                                     \
        T *gw = call.maybe_out<T>("weight's", gw_, G, D), *gb = call.maybe_out<T>("bias's", gb_, G, D);        \
        call.run([=] { rl::group_norm_backward<U>(g, x, mean, rstd, w, gx, gw, gb, N, G, D, P); });            \
    }                                                                                                          \
    RL_EXPORT void rl_batch_stats_##S(Array *x_, Array *mean_, Array *var_, long N, long C, long P) {          \
        rl::Call call("batch_stats");                                                                          \
        using T = rl::WideOf<U>;                                                                               \
        const U *x = call.in<U>("input", x_, N, C, P);                                                         \
        T *mean = call.out<T>("mean", mean_, C), *var = call.out<T>("variance", var_, C);                      \
        call.run([=] { rl::batch_stats<U>(x, mean, var, N, C, P); });                                          \
    }                                                                                                          \
    RL_EXPORT void rl_batch_apply_##S(Array *x_, Array *mean_, Array *rstd_, Array *w_, Array *b_, Array *o_,  \
                                      long N, long C, long P, int positive) {                                  \
        rl::Call call("batch_apply");                                                                          \
        using T = rl::WideOf<U>;                                                                               \
        const U *x = call.in<U>("input", x_, N, C, P);                                                         \
        const T *mean = call.in<T>("mean", mean_, C), *rstd = call.in<T>("rstd", rstd_, C);                    \
        const T *w = call.maybe_in<T>("weight", w_, C), *b = call.maybe_in<T>("bias", b_, C);                  \
        U *o = call.out<U>("out", o_, N, C, P);                                                                \
        call.run([=] { rl::batch_apply<U>(x, mean, rstd, w, b, o, N, C, P, positive); });                      \
    }                                                                                                          \
    RL_EXPORT void rl_batch_norm_backward_##S(Array *g_, Array *x_, Array *mean_, Array *rstd_, Array *w_,     \
                                              Array *gx_, Array *gw_, Array *gb_, long N, long C, long P,      \
                                              int training) {                                                  \
        rl::Call call("batch_norm_backward");                                                                  \
        using T = rl::WideOf<U>;                                                                               \
        const U *g = call.in<U>("gradient", g_, N, C, P), *x = call.in<U>("input", x_, N, C, P);               \
        const T *mean = call.in<T>("mean", mean_, C), *rstd = call.in<T>("rstd", rstd_, C);                    \
        const T *w = call.maybe_in<T>("weight", w_, C);                                                        \
        U *gx = call.maybe_out<U>("out", gx_, N, C, P);                                                        \
        T *gw = call.maybe_out<T>("weight's", gw_, C), *gb = call.maybe_out<T>("bias's", gb_, C);              \
        call.run([=] { rl::batch_norm_backward<U>({g, x, mean, rstd, w, gx, gw, gb, N, C, P, !!training}); }); \
    }
RL_ALL(ALL)
