// LU decompositions with partial pivoting, a block of kWide columns after another: what the blocks before it make of it comes by
// substitution and products (substitution.h, tiles of gemm.h); it is factored column by column, turned, so that columns lie in a row
// (the left-looking order of Golub and van Loan, "Matrix Computations", 2013, section 3.2.11).
// A sum is made in the same order whatever the number of threads.
#include <cmath>
#include <limits>

#include "substitution.h"
#include "transposes.h"

namespace rl {
namespace {

constexpr long kShared = 1L << 19;  // multiplications that are worth a thread
constexpr int kStep = 6;            // columns of a block that are done before the others of it
constexpr long kFew = 12;           // rows and columns up to which one goes after another

// The columns of a block from the diagonal down: `side` rows of `rows` numbers, `pitch` apart, zeros (or NaN) behind them.
template <class T> struct Columns {
    typedef typename Vector<T>::type V;
    static constexpr int L = kLanes<T>;
    T *data;
    long rows, side, pitch;

    T *column(long c) const { return data + c * pitch; }
    static V &vector(T *x) { return *reinterpret_cast<V *>(x); }

    // The first of the largest numbers of a column from row k on, of which NaN is the largest.
    long largest(long k) const {
        const T *x = column(k);
        T most = 0;
        bool known = true;
#pragma omp simd reduction(max : most) reduction(&& : known)
        for (long i = k; i < rows; ++i) {
            most = std::abs(x[i]) > most ? std::abs(x[i]) : most;
            known = known && x[i] == x[i];
        }
        long i = k;
        while (known ? std::abs(x[i]) != most : x[i] == x[i]) ++i;
        return i;
    }

    void exchange(long k, long p) const {
        for (long c = 0; c < side; ++c) std::swap(column(c)[k], column(c)[p]);
    }

    // Column k below the diagonal becomes that of L.
    void divide(long k) const {
        T *x = column(k);
        const T pivot = x[k], by = 1 / pivot;
        if (std::abs(pivot) >= std::numeric_limits<T>::min())
            for (long i = k + 1; i < rows; i += L) vector(x + i) *= by;
        else
            for (long i = k + 1; i < rows; ++i) x[i] /= pivot;
    }

    // Columns (k, end) without what column k makes of them.
    void reduce_near(long k, long end) const {
        T *x = column(k);
        for (long c = k + 1; c < end; ++c) {
            T *y = column(c);
            const T by = y[k];
            for (long i = k + 1; i < rows; i += L) vector(y + i) -= by * vector(x + i);
        }
    }

    // Columns from `first + kStep` on without what the kStep columns from `first` on make of them.
    void reduce_rest(long first) const {
        const long end = first + kStep;
        for (long c = end; c < side; ++c) {
            T *y = column(c) + first;
            for (int k = 1; k < kStep; ++k)
                for (int m = 0; m < k; ++m) y[k] -= column(first + m)[first + k] * y[m];
        }
        for (long i = end; i < rows; i += L) {
            V left[kStep];
#pragma GCC unroll 6
            for (int k = 0; k < kStep; ++k) left[k] = vector(column(first + k) + i);
            for (long c = end; c < side; ++c) {
                T *y = column(c);
                V sum = vector(y + i);
#pragma GCC unroll 6
                for (int k = 0; k < kStep; ++k) sum -= y[first + k] * left[k];
                vector(y + i) = sum;
            }
        }
    }

    // pivots: for each column the row it was exchanged with.  Returns the first column whose pivot is zero, or -1.
    long factor(long *pivots) const {
        long zero = -1;
        for (long first = 0; first < std::min(side, rows); first += kStep) {
            const long end = std::min(first + kStep, side);
            for (long k = first; k < std::min(end, rows); ++k) {
                pivots[k] = largest(k);
                if (pivots[k] != k) exchange(k, pivots[k]);
                if (column(k)[k] == 0) {
                    zero = zero < 0 ? k : zero;
                    continue;  // below it there are zeros, or NaN
                }
                divide(k);
                reduce_near(k, end);
            }
            if (end < side) reduce_rest(first);
        }
        return zero;
    }
};

template <class T> struct Lu {
    static constexpr long kSide = kWide<T>;
    T *a;
    long rows, columns;

    T *at(long i, long j) const { return a + i * columns + j; }

    // What the columns before a block make of its first `known` rows: they come into `panel` and into their place.
    void above(long known, long first, long side, T *panel) const {
        take_columns(at(0, first), columns, known, side, panel);
        Substitution<T>{{a, 1, known, known, 0, columns, false}, false, true}.solve(panel, side);
        put_columns(panel, known, side, at(0, first), columns);
    }

    // kRows rows from i on, without what the columns before the block make of them, to `to`, turned.
    void below(long i, long first, long side, const T *panel, T *to, long pitch) const {
        alignas(64) T sums[kRows * kSide];
        const long count = std::min<long>(kRows, rows - i);
        if (first) product<T, kByRows>(Rows<T>(at(i, 0), columns, 0, count).at, panel, first, side, sums, kSide, false);
        else std::fill(sums, sums + kRows * kSide, T(0));
        for (long r = 0; r < count; ++r)
            for (long c = 0; c < side; ++c) sums[r * kSide + c] = at(i + r, first)[c] - sums[r * kSide + c];
        transpose(sums, kSide, count, side, to, pitch, false);
    }

    // Rows are exchanged outside of the block, whose own have been.
    void exchange(long first, long side, long k, long p) const {
        if (k == p) return;
        std::swap_ranges(at(k, 0), at(k, first), at(p, 0));
        std::swap_ranges(at(k, first + side), at(k, columns), at(p, first + side));
    }

    // As `run`, of few rows and columns, where blocks do not pay.
    int32_t run_few(int32_t *pivots) const {
        int32_t zero = 0;
        for (long k = 0; k < std::min(rows, columns); ++k) {
            long p = k;
            for (long i = k + 1; i < rows && !std::isnan(*at(p, k)); ++i)
                if (!(std::abs(*at(i, k)) <= std::abs(*at(p, k)))) p = i;  // or NaN
            pivots[k] = (int32_t)(p + 1);
            if (p != k) std::swap_ranges(at(k, 0), at(k, columns), at(p, 0));
            const T pivot = *at(k, k);
            if (pivot == 0) {
                if (!zero) zero = (int32_t)(k + 1);
                continue;
            }
            for (long i = k + 1; i < rows; ++i) {
                const T by = *at(i, k) /= pivot;
                for (long j = k + 1; j < columns; ++j) *at(i, j) -= by * *at(k, j);
            }
        }
        return zero;
    }

    // In place.  pivots (min(rows, columns)): with which row each was exchanged, from one.  Returns 0, or which pivot is the first zero.
    int32_t run(int32_t *pivots) const {
        if (std::max(rows, columns) <= kFew) return run_few(pivots);
        const long deepest = std::min(rows, columns), pitch = rows + 2 * kLanes<T> + kStep;
        T *panel = scratch<T, 0>((deepest + pitch) * kSide), *turned = panel + deepest * kSide;
        int32_t zero = 0;
        for (long first = 0; first < columns; first += kSide) {
            const long side = std::min(kSide, columns - first), known = std::min(first, deepest), left = rows - known;
            above(known, first, side, panel);
            if (left <= 0) continue;
            const Columns<T> block{turned, left, side, pitch};
            for (long c = 0; c < side; ++c) std::fill(block.column(c) + left, block.column(c) + pitch, T(0));
            parallel_for(ceil_div(left, kRows), 1 + kShared / (kRows * kSide * (first + 1)), [=](long begin, long end) {
                for (long i = begin * kRows; i < std::min(left, end * kRows); i += kRows)
                    below(first + i, first, side, panel, turned + i, pitch);
            });
            long found[kSide];
            const long wrong = block.factor(found);
            transpose(turned, pitch, side, left, at(first, first), columns, false);
            if (wrong >= 0 && !zero) zero = (int32_t)(first + wrong + 1);
            for (long k = 0; k < std::min(side, left); ++k) {
                pivots[first + k] = (int32_t)(first + found[k] + 1);
                exchange(first, side, first + k, first + found[k]);
            }
        }
        return zero;
    }
};

// a (B, M, N), in which L below the diagonal and U from it on come; pivots (B, min(M, N)); zero (B).
template <class T> void factor_all(Array *a_, Array *pivots_, Array *zero_) {
    Call call("lu");
    const long batch = call.size("matrices", a_, 0), rows = call.size("matrices", a_, 1), columns = call.size("matrices", a_, 2);
    const long deepest = std::min(rows, columns);
    T *a = call.out<T>("matrices", a_, batch, rows, columns);
    int32_t *pivots = call.out<int32_t>("pivots", pivots_, batch, deepest), *zero = call.out<int32_t>("zero", zero_, batch);
    call.run([=] {
        parallel_for(batch, 1 + kShared / (rows * columns * deepest / 3 + 1), [=](long begin, long end) {
            for (long i = begin; i < end; ++i) zero[i] = Lu<T>{a + i * rows * columns, rows, columns}.run(pivots + i * deepest);
        });
    });
}

// Of factors (N, N) and the rows exchanged: x (N, M) becomes what the matrix times it was.
template <class T> void solve_one(Matrix<const T> factors, const int32_t *pivots, T *x, long columns) {
    const long n = factors.rows;
    for (long k = 0; k < n; ++k)
        if (pivots[k] - 1 != k) std::swap_ranges(x + k * columns, x + (k + 1) * columns, x + (pivots[k] - 1) * columns);
    parallel_for(ceil_div(columns, kWide<T>), kShared / (n * n * kWide<T> + 1) + 1, [=](long begin, long end) {
        for (long i = begin; i < end; ++i) {
            const long width = std::min<long>(kWide<T>, columns - i * kWide<T>);
            T *from = x + i * kWide<T>, *panel = scratch<T, 0>(n * kWide<T>);
            take_columns(from, columns, n, width, panel);
            Substitution<T>{factors, false, true}.solve(panel, width);
            Substitution<T>{factors, true, false}.solve(panel, width);
            put_columns(panel, n, width, from, columns);
        }
    });
}

// a (B, N, N), which becomes its factors; x (B, N, M), which becomes a^-1 x; zero (B): which pivot is the first zero, from one, or 0.
template <class T> void solve_all(Array *a_, Array *x_, Array *zero_) {
    Call call("solve");
    const long batch = call.size("matrices", a_, 0), n = call.size("matrices", a_, 1), columns = call.size("right", x_, 2);
    T *a = call.out<T>("matrices", a_, batch, n, n), *x = call.out<T>("right", x_, batch, n, columns);
    int32_t *zero = call.out<int32_t>("zero", zero_, batch);
    call.run([=] {
        parallel_for(batch, 1 + kShared / (n * n * (n / 3 + columns) + 1), [=](long begin, long end) {
            for (long i = begin; i < end; ++i) {
                int32_t *pivots = scratch<int32_t, 2>(n);
                T *one = a + i * n * n;
                zero[i] = Lu<T>{one, n, n}.run(pivots);
                solve_one<T>({one, 1, n, n, 0, n, false}, pivots, x + i * n * columns, columns);
            }
        });
    });
}

}  // namespace
}  // namespace rl

#define RL_LU(T, suffix)                                                                                       \
    RL_EXPORT void rl_lu_##suffix(Array *a, Array *pivots, Array *zero) { rl::factor_all<T>(a, pivots, zero); } \
    RL_EXPORT void rl_solve_##suffix(Array *a, Array *x, Array *zero) { rl::solve_all<T>(a, x, zero); }
RL_BOTH(RL_LU)
