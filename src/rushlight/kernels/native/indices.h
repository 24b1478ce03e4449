// Indices of rows and elements: which lie outside, which are the same, and how what meets at one is joined.
#pragma once
#include <algorithm>
#include <atomic>
#include <memory>

#include "gemm.h"
#include "memory.h"
#include "sixteen.h"

namespace rl {

// Whether any position from `begin` to `end` is wrong.
template <class F> inline bool any_where(long begin, long end, F wrong) {
    long found = 0;
#pragma omp simd reduction(+ : found)
    for (long i = begin; i < end; ++i) found += wrong(i);
    return found;
}

// The first position that is wrong; -1 if all are fine.
template <class F> inline long first_where(long n, F wrong) {
    std::atomic<bool> found{false};
    parallel_for(n, kGrain, [=, &found](long begin, long end) {
        if (any_where(begin, end, wrong)) found = true;
    });
    for (long i = 0; found && i < n; ++i)
        if (wrong(i)) return i;
    return -1;
}

// The first position whose index is outside [0, count), and not `but`.
inline long first_outside(const int64_t *idx, long n, long count) {
    return first_where(n, [=](long i) { return (uint64_t)idx[i] >= (uint64_t)count; });
}
inline long first_outside(const int64_t *idx, long n, long count, long but) {
    return first_where(n, [=](long i) { return (uint64_t)idx[i] >= (uint64_t)count && idx[i] != but; });
}

enum Joined { kSum = 0, kProduct = 1, kGreatest = 2, kLeast = 3 };  // of which NaN is all of the last two

// f(how two numbers become one).
template <class F> inline void joined_by(long how, F f) {
    if (how == kSum) f([](auto a, auto b) { return a + b; });
    else if (how == kProduct) f([](auto a, auto b) { return a * b; });
    else if (how == kGreatest) f([](auto a, auto b) { return (b > a) | (b != b) ? b : a; });
    else f([](auto a, auto b) { return (b < a) | (b != b) ? b : a; });
}

// Numbers of 16 bits that meet are joined in float32 and rounded once, so that those that meet are gone through together, in
// their order: the k-th of all positions of indices in [0, count), sorted by digits, the lowest first.
class Sorted {
    static constexpr int kDigit = 11;
    std::unique_ptr<long[]> at_;

    static void by_digit(const int64_t *idx, const long *from, long *to, long n, int shift) {
        long place[1 << kDigit] = {};
        constexpr long kMask = (1 << kDigit) - 1;
        for (long i = 0; i < n; ++i) ++place[idx[i] >> shift & kMask];
        for (long total = 0, d = 0; d <= kMask; ++d) {
            const long some = place[d];
            place[d] = total;
            total += some;
        }
        for (long i = 0; i < n; ++i) {
            const long k = from ? from[i] : i;
            to[place[idx[k] >> shift & kMask]++] = k;
        }
    }

  public:
    Sorted(const int64_t *idx, long n, long count) {
        if (std::is_sorted(idx, idx + n)) return;
        std::unique_ptr<long[]> next;
        for (int shift = 0; (count - 1) >> shift; shift += kDigit) {
            next.swap(at_);
            if (!at_) at_.reset(new long[n]);
            by_digit(idx, next.get(), at_.get(), n, shift);
        }
    }
    long operator[](long k) const { return at_ ? at_[k] : k; }
};

// f(which slice, index, from where to where among those sorted) of all that are the same, in each of several slices.
template <class F> void each_group(const int64_t *idx, const Sorted &at, long outer, long n, long grain, F f) {
    parallel_for(outer * n, grain, [=, &at](long begin, long end) {
        for (long u = begin; u < end;) {
            const long base = u / n * n, first = u - base, row = idx[at[first]];
            long last = first + 1;
            if (first && idx[at[first - 1]] == row) {  // of a group that began before
                ++u;
                continue;
            }
            while (last < n && idx[at[last]] == row) ++last;
            f(u / n, row, first, last);
            u = base + last;
        }
    });
}

// Numbers of 16 bits in float32 while others are joined with them: memory that a thread keeps, of many its own.
class Sums {
    static constexpr long kKept = 1 << 18;
    Scratch<float> own_;
    float *data_;

  public:
    explicit Sums(long count) : own_(count > kKept ? count : 0, false), data_(own_.size() ? own_.get() : scratch<float, 0>(count)) {}
    float *get() const { return data_; }
};

// A row of numbers of 16 bits and others, given by from(k), joined by join(k).
template <class U, class From, class Join> void join_row(U *to, long columns, long first, long last, From from, Join join) {
    alignas(64) float sum[kAtOnce];
    for (long c = 0; c < columns; c += kAtOnce) {
        const long some = std::min(kAtOnce, columns - c);
        widen(to + c, sum, some);
        for (long k = first; k < last; ++k) fold(from(k) + c, sum, some, join(k));
        narrow(sum, to + c, some);
    }
}

// dst[idx[i]] joined with src[i] for all i in their order, of the indices in [low, high).
template <class U, class F> void join_singles(U *dst, const int64_t *idx, const U *src, long low, long high, long N, F join) {
    if (low >= high) return;
    const Sums room(high - low);
    float *sums = room.get();
    widen(dst + low, sums, high - low);
    pieces<kAtOnce>(src, N, [=](long at, const float *given, long some) {
        for (long i = 0; i < some; ++i) {
            const long r = idx[at + i];
            if (r >= low && r < high) sums[r - low] = join(sums[r - low], given[i]);
        }
    });
    narrow(sums, dst + low, high - low);
}

}  // namespace rl
