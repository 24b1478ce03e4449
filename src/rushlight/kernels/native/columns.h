// Columns of matrices that lie beside each other, which go down the rows together.
#pragma once
#include "sixteen.h"
#include "vecmath.h"

namespace rl {

constexpr long kTile = 128;

// The largest of each column and the sum of exponentials above it, for `w` columns of an (n, inner) matrix; those are stored
// where there is a place, of rows `pitch` apart.
template <class U, bool kStore, class T = WideOf<U>>
static void tile_sums(const U *x, T *o, long n, long inner, long pitch, long w, T *m, T *s) {
    Part<U, kTile> part;
    for (long j = 0; j < w; ++j) m[j] = -infinity<T>(), s[j] = 0;
    for (long i = 0; i < n; ++i) {
        const T *row = part(x + i * inner, w);
#pragma omp simd
        for (long j = 0; j < w; ++j) m[j] = row[j] > m[j] ? row[j] : m[j];
    }
    for (long i = 0; i < n; ++i) {
        const T *row = part(x + i * inner, w);
        T *out = o + i * pitch;
#pragma omp simd
        for (long j = 0; j < w; ++j) {
            T e = rl::exp(row[j] - m[j]);
            if (kStore) out[j] = e;
            s[j] += e;
        }
    }
}

}  // namespace rl
