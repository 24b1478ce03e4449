// Where values belong between the elements of sorted rows; NaN counts as the largest.
#include "common.h"

namespace rl {

constexpr long kLanes = 32;  // values that are looked for together, without a branch: each halving is SIMD code

// Whether an element comes before the place of a value: right: also one that is equal.
template <class T, bool right> RL_INLINE bool passed(T element, T value) {
    return right ? !((value < element) | ((element != element) & (value == value))) : (element < value) | ((value != value) & (element == element));
}

template <class T, bool right> static void places(const T *row, long n, const T *values, int64_t *out, long count) {
    using Place = typename std::conditional<sizeof(T) == 4, int32_t, int64_t>::type;  // as wide as the values
    T value[kLanes];
    Place place[kLanes];
    for (long start = 0; start < count; start += kLanes) {
        const long some = count - start < kLanes ? count - start : kLanes;
        for (long k = 0; k < kLanes; ++k) value[k] = values[start + (k < some ? k : 0)], place[k] = 0;
        Place left = Place(n);
        for (; left > 1; left -= left / 2) {
            const Place half = left / 2;
#pragma omp simd
            for (long k = 0; k < kLanes; ++k) place[k] += passed<T, right>(row[place[k] + half - 1], value[k]) ? half : 0;
        }
#pragma omp simd
        for (long k = 0; k < kLanes; ++k) place[k] += passed<T, right>(row[place[k]], value[k]) ? 1 : 0;
        for (long k = 0; k < some; ++k) out[start + k] = place[k];
    }
}

template <class T> static void search(const T *x, const T *values, int64_t *out, long rows, long n, long count, bool right) {
    const auto run = right ? places<T, true> : places<T, false>;
    parallel_for(rows * count, 1024, [=](long begin, long end) {
        for (long stop; begin < end; begin = stop) {
            const long r = begin / count;
            stop = (r + 1) * count < end ? (r + 1) * count : end;
            run(x + r * n, n, values + begin, out + begin, stop - begin);
        }
    });
}

}  // namespace rl

#define ALL(T, S)                                                                                                              \
    RL_EXPORT void rl_search_##S(Array *x_, Array *values_, Array *out_, long rows, long n, long count, int right) {           \
        rl::Call call("search");                                                                                               \
        call.expect(0 < n && n < 1L << 31, "rows of one element or more, fewer than 2^31");                                    \
        const T *x = call.in<T>("sorted rows", x_, rows, n);                                                                   \
        const T *values = call.in<T>("values", values_, rows, count);                                                          \
        int64_t *out = call.out<int64_t>("places", out_, rows, count);                                                         \
        call.run([=] { rl::search<T>(x, values, out, rows, n, count, right); });                                               \
    }
RL_BOTH(ALL)
