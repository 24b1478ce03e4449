// The Cholesky decomposition, a block of kWide columns after another: each takes the products of the rows of those before it (tiles
// of gemm.h), is factored on its diagonal, and solved for below it (the left-looking order of Golub and van Loan, "Matrix
// Computations", 2013, section 4.2.8).
// A sum is made in the same order whatever the number of threads.
#include <cmath>

#include "transposes.h"

namespace rl {
namespace {

constexpr long kShared = 1L << 19;  // multiplications that are worth a thread
constexpr int kStep = 6;            // columns that are solved for together

template <class T> struct Cholesky {
    static constexpr long kSide = kWide<T>, kBelow = 2 * kLanes<T>;  // of a block, and rows below it that are solved for together
    typedef typename Vector<T>::type V;
    T *a;
    long n;

    T *at(long i, long j) const { return a + i * n + j; }

    // sums (count, kSide): rows from i on times the rows of the block, which `panel` holds turned, over the columns before it.
    void products(long i, long count, const T *panel, long before, long side, T *sums) const {
        if (!before) return std::fill(sums, sums + count * kSide, T(0));
        T rest[kRows * kSide];
        for (long r = 0; r < count; r += kRows) {
            const bool whole = count - r >= kRows;
            T *to = whole ? sums + r * kSide : rest;
            product<T, kByRows>(Rows<T>(at(i, 0), n, r, count).at, panel, before, side, to, kSide, false);
            if (!whole) std::copy_n(rest, (count - r) * kSide, sums + r * kSide);
        }
    }

    // upper (side, kSide), of which what is left of the diagonal is anything: U with U^T U = what it held.  Returns 0, or the order of
    // its first minor that is not positive definite.
    static long factor(T *upper, long side) {
        for (long k = 0; k < side; ++k) {
            T *row = upper + k * kSide;
            if (!(row[k] > 0)) return k + 1;
            const T root = std::sqrt(row[k]), by = 1 / root;
            for (long v = k / kLanes<T> * kLanes<T>; v < side; v += kLanes<T>) vector(row + v) *= by;
            row[k] = root;
            for (long i = k + 1; i < side; ++i)
                for (long v = i / kLanes<T> * kLanes<T>; v < side; v += kLanes<T>) vector(upper + i * kSide + v) -= row[i] * vector(row + v);
        }
        return 0;
    }

    static V &vector(T *x) { return *reinterpret_cast<V *>(x); }

    // x (kSide, kBelow) = columns of L^-1 x, of the block's lower triangle.
    static void solve(const T *lower, T *x) {
        constexpr int L = kLanes<T>;
        for (long k = 0; k < kSide; k += kStep) {
            V sum[kStep][2];
#pragma GCC unroll 6
            for (int q = 0; q < kStep; ++q) sum[q][0] = vector(x + (k + q) * kBelow), sum[q][1] = vector(x + (k + q) * kBelow + L);
            for (long m = 0; m < k; ++m) {
                const V first = vector(x + m * kBelow), second = vector(x + m * kBelow + L);
#pragma GCC unroll 6
                for (int q = 0; q < kStep; ++q) {
                    const T by = lower[(k + q) * kSide + m];
                    sum[q][0] -= by * first, sum[q][1] -= by * second;
                }
            }
#pragma GCC unroll 6
            for (int q = 0; q < kStep; ++q) {
                const T root = lower[(k + q) * kSide + k + q];
                vector(x + (k + q) * kBelow) = sum[q][0] /= root, vector(x + (k + q) * kBelow + L) = sum[q][1] /= root;
#pragma GCC unroll 6
                for (int p = q + 1; p < kStep; ++p) {
                    const T by = lower[(k + p) * kSide + k + q];
                    sum[p][0] -= by * sum[q][0], sum[p][1] -= by * sum[q][1];
                }
            }
        }
    }

    // Up to kBelow rows from i on, in the columns of the block that begins at `first`.
    void below(long i, long first, const T *panel, const T *lower) const {
        alignas(64) T rows[kBelow * kSide], turned[kSide * kBelow];
        const long count = std::min(kBelow, n - i);
        products(i, count, panel, first, kSide, rows);
        for (long r = 0; r < count; ++r)
            for (long c = 0; c < kSide; ++c) rows[r * kSide + c] = at(i + r, first)[c] - rows[r * kSide + c];
        if (count < kBelow) std::fill(turned, turned + kSide * kBelow, T(0));
        transpose(rows, kSide, count, kSide, turned, kBelow, false);
        solve(lower, turned);
        transpose(turned, kBelow, kSide, count, at(i, first), n, false);
    }

    // The block of `side` columns from `first` on, on the diagonal.  `lower` (kSide, kSide) becomes its factor.
    long diagonal(long first, long side, const T *panel, T *lower) const {
        alignas(64) T sums[kSide * kSide], upper[kSide * kSide];
        products(first, side, panel, first, side, sums);
        transpose(at(first, first), n, side, side, upper, kSide, false);
        for (long k = 0; k < side; ++k)
            for (long c = k; c < side; ++c) upper[k * kSide + c] -= sums[k * kSide + c];
        const long wrong = factor(upper, side);
        if (wrong) return first + wrong;
        transpose(upper, kSide, side, side, lower, kSide, false);
        for (long r = 0; r < side; ++r) std::copy_n(lower + r * kSide, r + 1, at(first + r, first));
        return 0;
    }

    // In place.  Returns 0, or the order of the first minor that is not positive definite.
    long run() const {
        T *panel = scratch<T, 0>((n + kSide) * kSide), *lower = panel + n * kSide;
        for (long first = 0; first < n; first += kSide) {
            const long side = std::min(kSide, n - first);
            if (side % kLanes<T>) std::fill(panel, panel + first * kSide, T(0));
            pack_turned(at(first, 0), n, first, side, panel);
            const long wrong = diagonal(first, side, panel, lower);
            if (wrong) return wrong;
            const long chunks = ceil_div(n - first - side, kBelow);
            parallel_for(chunks, 1 + kShared / (kBelow * kSide * (first + kSide)), [=](long begin, long end) {
                for (long i = begin; i < end; ++i) below(first + side + i * kBelow, first, panel, lower);
            });
        }
        for (long i = 0; i < n; ++i) std::fill(at(i, i + 1), at(i, n), T(0));
        return 0;
    }
};

// a (B, N, N), of which the lower triangles are read, and become the factors with zeros above; failed (B): 0, or the order of the
// first minor that is not positive definite.
template <class T> void factor_all(Array *a_, Array *failed_) {
    Call call("cholesky");
    const long batch = call.size("matrices", a_, 0), n = call.size("matrices", a_, 1);
    T *a = call.out<T>("matrices", a_, batch, n, n);
    int32_t *failed = call.out<int32_t>("failed", failed_, batch);
    call.run([=] {
        parallel_for(batch, 1 + kShared / (n * n * n / 6 + 1), [=](long begin, long end) {
            for (long i = begin; i < end; ++i) failed[i] = (int32_t)Cholesky<T>{a + i * n * n, n}.run();
        });
    });
}

}  // namespace
}  // namespace rl

#define RL_CHOLESKY(T, suffix) \
    RL_EXPORT void rl_cholesky_##suffix(Array *a, Array *failed) { rl::factor_all<T>(a, failed); }
RL_BOTH(RL_CHOLESKY)
