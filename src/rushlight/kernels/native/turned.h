// Rows of a few elements put down as columns, of which a vector takes one of many rows at a time.
#pragma once
#include "columns.h"

namespace rl {

constexpr long kFew = 32;  // elements of a row up to which it has too few for vectors of its own

// Columns of `w` rows, filled up to whole vectors: a loop that is cut short takes numbers one by one.
inline long filled(long w) { return ceil_div(w, 16) * 16; }

// to[c * filled(w) + r] = from[r * n + c], of w rows of n; 0 beside them
template <class U> RL_INLINE void put_as_columns(const U *from, U *to, long w, long n) {
    const long pitch = filled(w);
    for (long c = 0; c < n; ++c) {
        for (long r = 0; r < w; ++r) to[c * pitch + r] = from[r * n + c];
        for (long r = w; r < pitch; ++r) to[c * pitch + r] = U();
    }
}

// to[r * n + c] = from[c * filled(w) + r]
template <class U> RL_INLINE void put_as_rows(const U *from, U *to, long w, long n) {
    const long pitch = filled(w);
    for (long r = 0; r < w; ++r)
        for (long c = 0; c < n; ++c) to[r * n + c] = from[c * pitch + r];
}

}  // namespace rl
