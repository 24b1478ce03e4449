// Sums and maxima of a row.  The order of a sum is fixed by the row's length alone.
#pragma once
#include "vecmath.h"

namespace rl {

// The largest element; NaN is passed over, -infinity if there is nothing else.
template <class T> RL_INLINE T row_max(const T *x, long n) {
    constexpr int kLanes = 256 / (int)sizeof(T);
    T lane[kLanes];
    for (int k = 0; k < kLanes; ++k) lane[k] = -infinity<T>();
    long i = 0;
    for (; i + kLanes <= n; i += kLanes)
#pragma omp simd
        for (int k = 0; k < kLanes; ++k) lane[k] = x[i + k] > lane[k] ? x[i + k] : lane[k];
    for (int k = 0; i < n; ++i, ++k) lane[k] = x[i] > lane[k] ? x[i] : lane[k];
    for (int width = kLanes / 2; width > 0; width /= 2)
        for (int k = 0; k < width; ++k) lane[k] = lane[k + width] > lane[k] ? lane[k + width] : lane[k];
    return lane[0];
}

}  // namespace rl
