// A square of a matrix put down the other way: read by rows, written by rows, a line of cache each.
#pragma once
#include <cstring>

namespace rl {

// o[j * to + i] = x[i * from + j] for i, j < N
template <class T, long N> inline void square(const T *x, long from, T *o, long to) {
    T held[N][N];
    for (long i = 0; i < N; ++i) std::memcpy(held[i], x + i * from, sizeof(held[i]));
    for (long j = 0; j < N; ++j) {
        T *line = o + j * to;
        for (long i = 0; i < N; ++i) line[i] = held[i][j];
    }
}

}  // namespace rl
