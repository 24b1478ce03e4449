// What is done to each of several arrays in one call.
#include <vector>

#include "row_sums.h"

namespace rl {

// An array of a list, its elements in any order without gaps.
template <class T> struct Each {
    T *data;
    long n;
};

// Those of a list before the first that is no array of T's, or has gaps.
template <class T> static std::vector<Each<T>> listed(Call &call, Array *objects, long count, bool written) {
    Array *const *x = call.in<Array *>("arrays", objects, count);
    std::vector<Each<T>> found;
    for (; x && (long)found.size() < count; ++x) {
        T *data = Call::paired<T>(*x, *x, written);
        if (!data) break;
        found.push_back({data, Call::product(*x)});
    }
    return found;
}

// The sum of squares of each, in pieces, the order of which their number decides.
template <class T> static long squares_of_each(Array *objects, Array *sums_, long count) {
    Call call("squares_of_each");
    double *sums = call.out<double>("sums", sums_, count);
    const std::vector<Each<T>> arrays = listed<T>(call, objects, count, false);
    call.run([&] {
        struct Piece {
            const T *data;
            long n, of;
        };
        constexpr long kPiece = 1 << 16;
        std::vector<Piece> pieces;
        long total = 0;
        for (long i = 0; i < (long)arrays.size(); total += arrays[i++].n)
            for (long at = 0; at < arrays[i].n; at += kPiece)
                pieces.push_back({arrays[i].data + at, arrays[i].n - at < kPiece ? arrays[i].n - at : kPiece, i});
        std::vector<double> parts(pieces.size());
        const long many = (long)pieces.size(), grain = many * kGrain / (total + 1) + 1;
        parallel_for(many, grain, [&](long begin, long end) {
            for (long i = begin; i < end; ++i) parts[i] = row_sum(pieces[i].data, pieces[i].n, [](auto v) { return v * v; });
        });
        for (long i = 0; i < (long)arrays.size(); ++i) sums[i] = 0;
        for (long i = 0; i < many; ++i) sums[pieces[i].of] += parts[i];
    });
    return (long)arrays.size();
}

// Each in place, one after the other: they may be the same.
template <class T, class F> static long change_each(const char *name, Array *objects, long count, F f) {
    Call call(name);
    const std::vector<Each<T>> arrays = listed<T>(call, objects, count, true);
    call.run([&] {
        for (const Each<T> &one : arrays) {
            T *x = one.data;
            parallel_for(one.n, kGrain, [=](long begin, long end) {
#pragma omp simd
                for (long i = begin; i < end; ++i) x[i] = f(x[i]);
            });
        }
    });
    return (long)arrays.size();
}

template <class T> static long multiply_each_all(Array *objects, long count, double factor) {
    const T by = (T)factor;
    return change_each<T>("multiply_each", objects, count, [by](T x) { return x * by; });
}

template <class T> static long clamp_each_all(Array *objects, long count, double least, double most) {
    const T low = (T)least, high = (T)most;
    return change_each<T>("clamp_each", objects, count, [low, high](T x) {
        x = x < low ? low : x;
        return x > high ? high : x;
    });
}

template <class T> static long squares_of_each_all(Array *objects, Array *sums, long count) {
    return squares_of_each<T>(objects, sums, count);
}

}  // namespace rl

#define ALL(T, S)                                                                                                          \
    RL_EXPORT long rl_squares_of_each_##S(Array *x, Array *sums, long n) { return rl::squares_of_each_all<T>(x, sums, n); } \
    RL_EXPORT long rl_multiply_each_##S(Array *x, long n, double by) { return rl::multiply_each_all<T>(x, n, by); }        \
    RL_EXPORT long rl_clamp_each_##S(Array *x, long n, double low, double high) { return rl::clamp_each_all<T>(x, n, low, high); }
RL_BOTH(ALL)
