// Sums and maxima of a row.  The order of a sum is fixed by the row's length alone.
#pragma once
#include "lanes.h"
#include "vecmath.h"

namespace rl {

template <int kLanes, class T> RL_INLINE T row_max_by(const T *x, long n) {
    T lane[kLanes];
    for (int k = 0; k < kLanes; ++k) lane[k] = -infinity<T>();
    long i = 0;
    for (; i + kLanes <= n; i += kLanes)
#pragma omp simd
        for (int k = 0; k < kLanes; ++k) lane[k] = x[i + k] > lane[k] ? x[i + k] : lane[k];
    for (; i < n; i += kVector<T>) {  // the last of these begins before the one before it ends
        const T *from = x + (i < n - kVector<T> ? i : n - kVector<T>);
#pragma omp simd
        for (int k = 0; k < kVector<T>; ++k) lane[k] = from[k] > lane[k] ? from[k] : lane[k];
    }
    for (int width = kLanes / 2; width > 0; width /= 2)
        for (int k = 0; k < width; ++k) lane[k] = lane[k + width] > lane[k] ? lane[k + width] : lane[k];
    return lane[0];
}

// The elements of a row too short for a vector, followed by `rest` to make one: a loop that is cut short takes them one by one.
template <class T> RL_INLINE void padded(const T *x, long n, T rest, T *to) {
    for (long i = 0; i < kVector<T>; ++i) to[i] = rest;
    for (long i = 0; i < n; ++i) to[i] = x[i];
}

// The largest element; NaN is passed over, -infinity if there is nothing else.
template <class T> RL_INLINE T row_max(const T *x, long n) {
    if (n >= 4 * kVector<T>) return row_max_by<4 * kVector<T>>(x, n);
    if (n >= kVector<T>) return row_max_by<kVector<T>>(x, n);
    T v[kVector<T>];
    padded(x, n, -infinity<T>(), v);
#pragma omp simd
    for (long i = 0; i < kVector<T>; ++i) v[i] = v[i] == v[i] ? v[i] : -infinity<T>();
    return lanes_joined(v, [](auto a, auto b) { return a > b ? a : b; });
}

template <class T> RL_INLINE T sum_of_lanes(const T *v) {
    return lanes_joined(v, [](auto a, auto b) { return a + b; });
}

// The exponentials of a row too short for a vector, in `v`, above `m`; their sum.
template <class T> RL_INLINE T exp_of_few(const T *x, long n, T m, T *v) {
    padded(x, n, -infinity<T>(), v);
#pragma omp simd
    for (long i = 0; i < kVector<T>; ++i) v[i] = rl::exp(v[i] - m);
    return sum_of_lanes(v);
}

// The sum of the exponentials of a row above `m`.
template <class T> RL_INLINE T exp_sum(const T *x, long n, T m) {
    constexpr long V = kVector<T>;
    T last[V], s = 0;
    if (n < V) return exp_of_few(x, n, m, last);
    const long rest = n % V;
#pragma omp simd reduction(+ : s)
    for (long i = 0; i < n - rest; ++i) s += rl::exp(x[i] - m);
    if (!rest) return s;
#pragma omp simd
    for (long i = 0; i < V; ++i) last[i] = i < V - rest ? T(0) : rl::exp(x[n - V + i] - m);
    return s + sum_of_lanes(last);
}

// The same, each of them in `o`, which may be `x`.
template <class T> RL_INLINE T exp_each(const T *x, T *o, long n, T m) {
    constexpr long V = kVector<T>;
    T last[V], s = 0;
    if (n < V) {
        s = exp_of_few(x, n, m, last);
        for (long i = 0; i < n; ++i) o[i] = last[i];
        return s;
    }
    const long rest = n % V;
    if (rest) std::memcpy(last, x + n - V, sizeof last);  // some of which are written before
#pragma omp simd reduction(+ : s)
    for (long i = 0; i < n - rest; ++i) {
        const T e = rl::exp(x[i] - m);
        o[i] = e;
        s += e;
    }
    if (!rest) return s;
    T *to = o + n - V;
#pragma omp simd
    for (long i = 0; i < V; ++i) {
        const T e = rl::exp(last[i] - m);
        to[i] = e;
        last[i] = i < V - rest ? T(0) : e;
    }
    return s + sum_of_lanes(last);
}

}  // namespace rl
