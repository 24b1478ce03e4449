// Loops of NumPy's ufuncs that large arrays go through on all threads: each calls NumPy's own on one part of the elements.
#include <utility>

#include "flags.h"

namespace rl {
namespace {

using Size = intptr_t;
using Loop = void (*)(char **args, const Size *count, const Size *step, void *data);

constexpr int kPlaces = 256, kMost = 3;

// A loop that NumPy had, of so many operands, the last of which it writes, and how many elements are worth a thread.
struct Place {
    Loop former = nullptr, own = nullptr;  // and one of ours, where it is the faster, for elements of `width` bytes
    int operands = 0;
    Size grain = 0, width = 0;
};
Place places[kPlaces];

// Whether no element that is written is read as another: where operands are the same memory, they are so one by one.
bool apart(char **args, Size n, const Size *step, int last) {
    const char *to = args[last];
    const Size reach = n * step[last];
    for (int i = 0; i < last; ++i) {
        if (args[i] == to && step[i] == step[last]) continue;
        const char *from = args[i] + (step[i] < 0 ? (n - 1) * step[i] : 0);
        const Size bytes = (step[i] < 0 ? -step[i] : step[i]) * (n - 1) + (Size)sizeof(double);
        if (to < from + bytes && from < to + reach) return false;
    }
    return true;
}

void divide(const Place &place, Loop loop, char **args, Size n, const Size *step, void *data) {
    parallel_with_flags(n, place.grain, [&, data](long begin, long end) {
        char *part[kMost];
        for (int i = 0; i < place.operands; ++i) part[i] = args[i] + begin * step[i];
        const Size size = end - begin;
        loop(part, &size, step, data);
    });
}

// The larger or smaller of two: of equal ones the second, NaN where one is.  NumPy's own take four times as long beside a number.
template <class T, bool kLarger> void extremes(const T *x, const T *y, T *o, Size n, bool one_x, bool one_y) {
    const auto run = [=](auto of_x, auto of_y) {
#pragma omp simd
        for (Size i = 0; i < n; ++i) {
            const T a = of_x(i), b = of_y(i), most = (kLarger ? a > b : a < b) ? a : b;
            o[i] = a != a ? a : most;
        }
    };
    const T first = *x, second = *y;
    if (one_x) run([=](Size) { return first; }, [=](Size i) { return y[i]; });
    else if (one_y) run([=](Size i) { return x[i]; }, [=](Size) { return second; });
    else run([=](Size i) { return x[i]; }, [=](Size i) { return y[i]; });
}

template <class T, bool kLarger> void extremum(char **args, const Size *count, const Size *step, void *) {
    const int before = std::fetestexcept(FE_INVALID);
    extremes<T, kLarger>((const T *)args[0], (const T *)args[1], (T *)args[2], *count, !step[0], !step[1]);
    if (!before) std::feclearexcept(FE_INVALID);  // which comparing NaNs raises, and NumPy's do not
}

// Whether the elements of every operand lie side by side, or are one number beside them.
bool plain(const Place &place, const Size *step) {
    const int last = place.operands - 1;
    for (int i = 0; i < last; ++i)
        if (step[i] && step[i] != step[last]) return false;
    return step[last] == place.width && (step[0] || step[last - 1]);
}

constexpr Size kWorth = 512;  // elements from which on a loop of ours is worth its questions

template <int I> void loop(char **args, const Size *count, const Size *step, void *data) {
    const Place &place = places[I];
    const Size n = count[0];
    const int last = place.operands - 1;
    const bool large = n >= 2 * place.grain && threads() > 1, own = place.width && n >= kWorth && plain(place, step);
    if (!(large || own) || step[last] <= 0 || !apart(args, n, step, last)) place.former(args, count, step, data);
    else if (large) divide(place, own ? place.own : place.former, args, n, step, data);
    else place.own(args, count, step, data);
}

template <int... I> Loop nth(int place, std::integer_sequence<int, I...>) {
    static const Loop all[] = {loop<I>...};
    return all[place];
}

}  // namespace
}  // namespace rl

// The loop for a place, which is to stand for a former of NumPy's; nullptr if there are no more.
RL_EXPORT void *rl_divided(int place) {
    return place < 0 || place >= rl::kPlaces ? nullptr : (void *)rl::nth(place, std::make_integer_sequence<int, rl::kPlaces>());
}
RL_EXPORT void *rl_divided_former(int place) { return &rl::places[place].former; }
RL_EXPORT void rl_divided_as(int place, int operands, long grain) {
    rl::places[place].operands = operands;
    rl::places[place].grain = grain;
}
// A loop of ours for elements of so many bytes: the larger ones, or the smaller.
RL_EXPORT void rl_divided_extremes(int place, int larger, long width) {
    auto &at = rl::places[place];
    at.width = width;
    if (width == sizeof(float)) at.own = larger ? rl::extremum<float, true> : rl::extremum<float, false>;
    else at.own = larger ? rl::extremum<double, true> : rl::extremum<double, false>;
}
