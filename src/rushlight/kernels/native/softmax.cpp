// Softmax, its logarithm and their gradients over the middle axis of (outer, count, inner).
//
// Rows (inner == 1) are worked one by one while they lie in cache.  Otherwise tiles of neighbouring columns
// go down the axis together, so that memory is read along lines.
#include "reduce.h"

namespace rl {

constexpr long kTile = 128;

template <class T> static void softmax_row(const T *x, T *o, long n) {
    T m = row_max(x, n), s = 0;
#pragma omp simd reduction(+ : s)
    for (long i = 0; i < n; ++i) {
        T e = rl::exp(x[i] - m);
        o[i] = e;
        s += e;
    }
    T scale = T(1) / s;
#pragma omp simd
    for (long i = 0; i < n; ++i) o[i] *= scale;
}

template <class T> static void log_softmax_row(const T *x, T *o, long n) {
    T m = row_max(x, n), s = 0;
#pragma omp simd reduction(+ : s)
    for (long i = 0; i < n; ++i) s += rl::exp(x[i] - m);
    T l = rl::log(s);
#pragma omp simd
    for (long i = 0; i < n; ++i) o[i] = x[i] - m - l;
}

template <class T> static void softmax_backward_row(const T *g, const T *y, T *o, long n) {
    T s = 0;
#pragma omp simd reduction(+ : s)
    for (long i = 0; i < n; ++i) s += g[i] * y[i];
#pragma omp simd
    for (long i = 0; i < n; ++i) o[i] = (g[i] - s) * y[i];
}

template <class T> static void log_softmax_backward_row(const T *g, const T *y, T *o, long n) {
    T s = 0;
#pragma omp simd reduction(+ : s)
    for (long i = 0; i < n; ++i) s += g[i];
#pragma omp simd
    for (long i = 0; i < n; ++i) o[i] = g[i] - rl::exp(y[i]) * s;
}

// The largest of each column and the sum of exponentials above it, for `w` columns of an (n, inner) matrix.
template <class T, bool kStore>
static void tile_sums(const T *x, T *o, long n, long inner, long w, T *m, T *s) {
    for (long j = 0; j < w; ++j) m[j] = -infinity<T>(), s[j] = 0;
    for (long i = 0; i < n; ++i) {
        const T *row = x + i * inner;
#pragma omp simd
        for (long j = 0; j < w; ++j) m[j] = row[j] > m[j] ? row[j] : m[j];
    }
    for (long i = 0; i < n; ++i) {
        const T *row = x + i * inner;
        T *out = o + i * inner;
#pragma omp simd
        for (long j = 0; j < w; ++j) {
            T e = rl::exp(row[j] - m[j]);
            if (kStore) out[j] = e;
            s[j] += e;
        }
    }
}

template <class T> static void softmax_tile(const T *x, T *o, long n, long inner, long w) {
    T m[kTile], s[kTile];
    tile_sums<T, true>(x, o, n, inner, w, m, s);
    for (long j = 0; j < w; ++j) s[j] = T(1) / s[j];
    for (long i = 0; i < n; ++i)
#pragma omp simd
        for (long j = 0; j < w; ++j) o[i * inner + j] *= s[j];
}

template <class T> static void log_softmax_tile(const T *x, T *o, long n, long inner, long w) {
    T m[kTile], s[kTile];
    tile_sums<T, false>(x, o, n, inner, w, m, s);
    for (long j = 0; j < w; ++j) s[j] = rl::log(s[j]);
    for (long i = 0; i < n; ++i)
#pragma omp simd
        for (long j = 0; j < w; ++j) o[i * inner + j] = x[i * inner + j] - m[j] - s[j];
}

template <class T, bool kLog> static void backward_tile(const T *g, const T *y, T *o, long n, long inner, long w) {
    T s[kTile];
    for (long j = 0; j < w; ++j) s[j] = 0;
    for (long i = 0; i < n; ++i)
#pragma omp simd
        for (long j = 0; j < w; ++j) s[j] += kLog ? g[i * inner + j] : g[i * inner + j] * y[i * inner + j];
    for (long i = 0; i < n; ++i)
#pragma omp simd
        for (long j = 0; j < w; ++j) {
            long k = i * inner + j;
            o[k] = kLog ? g[k] - rl::exp(y[k]) * s[j] : (g[k] - s[j]) * y[k];
        }
}

// Runs `row(offset)` for every row, or `tile(offset, width)` for every tile of columns.
template <class Row, class Tile> static void sweep(long outer, long n, long inner, Row row, Tile tile) {
    if (n == 0 || inner == 0) return;
    if (inner == 1) {
        parallel_for(outer, row_grain(n), [=](long begin, long end) {
            for (long i = begin; i < end; ++i) row(i * n);
        });
        return;
    }
    long tiles = (inner + kTile - 1) / kTile;
    parallel_for(outer * tiles, row_grain(n * (inner < kTile ? inner : kTile)), [=](long begin, long end) {
        for (long i = begin; i < end; ++i) {
            long first = i % tiles * kTile;
            tile(i / tiles * n * inner + first, inner - first < kTile ? inner - first : kTile);
        }
    });
}

}  // namespace rl

#define FORWARD(NAME, T, S)                                                                                \
    RL_EXPORT void rl_##NAME##_##S(Array *x_, Array *o_, long outer, long n, long inner) {                 \
        rl::Call call(#NAME);                                                                              \
        const T *x = call.in<T>("input", x_, outer, n, inner);                                             \
        T *o = call.out<T>("out", o_, outer, n, inner);                                                    \
        call.run([=] {                                                                                     \
            rl::sweep(outer, n, inner, [=](long at) { rl::NAME##_row(x + at, o + at, n); },                \
                      [=](long at, long w) { rl::NAME##_tile(x + at, o + at, n, inner, w); });             \
        });                                                                                                \
    }
#define BACKWARD(NAME, LOG, T, S)                                                                          \
    RL_EXPORT void rl_##NAME##_##S(Array *g_, Array *y_, Array *o_, long outer, long n, long inner) {      \
        rl::Call call(#NAME);                                                                              \
        const T *g = call.in<T>("gradient", g_, outer, n, inner);                                          \
        const T *y = call.in<T>("output", y_, outer, n, inner);                                            \
        T *o = call.out<T>("out", o_, outer, n, inner);                                                    \
        call.run([=] {                                                                                     \
            rl::sweep(outer, n, inner, [=](long at) { rl::NAME##_row(g + at, y + at, o + at, n); },        \
                      [=](long at, long w) {                                                               \
                          rl::backward_tile<T, LOG>(g + at, y + at, o + at, n, inner, w);                  \
                      });                                                                                  \
        });                                                                                                \
    }
#define ALL(T, S)                                \
    FORWARD(softmax, T, S)                       \
    FORWARD(log_softmax, T, S)                   \
    BACKWARD(softmax_backward, false, T, S)      \
    BACKWARD(log_softmax_backward, true, T, S)
RL_BOTH(ALL)
