// Solving with a triangular matrix, of a panel of right sides: rows go some at a time, by products with what is known (tiles of
// gemm.h), and a small triangle in registers.
#pragma once
#include <algorithm>

#include "gemm.h"

namespace rl {

// `kRows` rows of the panel that are solved for together, in the order in which they become known.
template <class T> struct Block {
    T triangle[kRows][kRows];
    T *row[kRows];
    const T *sum[kRows];
};

template <class T, int NV> static void finish(const Block<T> &b) {
    typedef typename Vector<T>::type V;
    constexpr int L = kLanes<T>;
    V x[kRows][NV];
#pragma GCC unroll 8
    for (int p = 0; p < kRows; ++p)
#pragma GCC unroll 3
        for (int v = 0; v < NV; ++v)
            x[p][v] = *reinterpret_cast<const V *>(b.row[p] + v * L) - *reinterpret_cast<const V *>(b.sum[p] + v * L);
#pragma GCC unroll 8
    for (int p = 0; p < kRows; ++p) {
#pragma GCC unroll 3
        for (int v = 0; v < NV; ++v) {
            x[p][v] /= b.triangle[p][p];
            *reinterpret_cast<V *>(b.row[p] + v * L) = x[p][v];
        }
#pragma GCC unroll 8
        for (int q = p + 1; q < kRows; ++q)
#pragma GCC unroll 3
            for (int v = 0; v < NV; ++v) x[q][v] -= b.triangle[q][p] * x[p][v];
    }
}

template <class T> struct Substitution {
    Matrix<const T> a;
    bool upper, unit;  // unit: the diagonal counts as ones, and is not read

    // sums (kRows, kWide): rows [i, i + rows) of the triangle times the `steps` rows of the panel that are known, from row `first` on.
    void known(long i, long rows, long first, long steps, const T *panel, long width, T *sums) const {
        const T *from = a.at(i, first), *right = panel + first * kWide<T>;
        if (!a.turned) return product<T, kByRows>(Rows<T>(from, a.pitch, 0, rows).at, right, steps, width, sums, kWide<T>, false);
        T *packed = scratch<T, 1>(steps * kRows);
        for (long s = 0; s < steps; ++s) {
            if (rows == kRows) std::copy_n(from + s * a.pitch, kRows, packed + s * kRows);
            else
                for (long r = 0; r < kRows; ++r) packed[s * kRows + r] = from[s * a.pitch + std::min(r, rows - 1)];
        }
        product<T, kByPanels>(&packed, right, steps, width, sums, kWide<T>, false);
    }

    Block<T> block(long i, long rows, T *panel, const T *sums, T *nothing) const {
        Block<T> b;
        for (long p = 0; p < kRows; ++p) {
            const long r = upper ? rows - 1 - p : p;
            for (long q = 0; q < p; ++q) b.triangle[p][q] = p < rows ? *a.at(i + r, i + (upper ? rows - 1 - q : q)) : T(0);
            b.triangle[p][p] = p < rows && !unit ? *a.at(i + r, i + r) : T(1);
            b.row[p] = p < rows ? panel + (i + r) * kWide<T> : nothing;
            b.sum[p] = sums + (p < rows ? r : 0) * kWide<T>;
        }
        return b;
    }

    // A panel (N, kWide) of which `width` columns count, in place.
    void solve(T *panel, long width) const {
        alignas(64) T sums[kRows * kWide<T>], nothing[kWide<T>];
        const long n = a.rows;
        std::fill(nothing, nothing + kWide<T>, T(0));
        for (long done = 0, rows; done < n; done += rows) {
            rows = std::min<long>(kRows, n - done);
            const long i = upper ? n - done - rows : done;
            if (done) known(i, rows, upper ? i + rows : 0, done, panel, width, sums);
            else std::fill(sums, sums + kRows * kWide<T>, T(0));
            const Block<T> b = block(i, rows, panel, sums, nothing);
            if (width > 2 * kLanes<T>) finish<T, 3>(b);
            else if (width > kLanes<T>) finish<T, 2>(b);
            else finish<T, 1>(b);
        }
    }
};

// `width` columns of x (N, ...), `pitch` elements from row to row: to a panel (N, kWide), with zeros behind them.
template <class T> static void take_columns(const T *x, long pitch, long rows, long width, T *panel) {
    for (long i = 0; i < rows; ++i) {
        std::copy_n(x + i * pitch, width, panel + i * kWide<T>);
        std::fill(panel + i * kWide<T> + width, panel + (i + 1) * kWide<T>, T(0));
    }
}

template <class T> static void put_columns(const T *panel, long rows, long width, T *x, long pitch) {
    for (long i = 0; i < rows; ++i) std::copy_n(panel + i * kWide<T>, width, x + i * pitch);
}

}  // namespace rl
