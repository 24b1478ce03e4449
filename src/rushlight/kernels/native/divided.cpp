// Loops of NumPy's ufuncs that large arrays go through on all threads: each calls NumPy's own on one part of the elements.
#include <utility>

#include "flags.h"

namespace rl {
namespace {

using Size = intptr_t;
using Loop = void (*)(char **args, const Size *count, const Size *step, void *data);

constexpr int kPlaces = 192, kMost = 3;

// A loop that NumPy had, of so many operands, the last of which it writes, and how many elements are worth a thread.
struct Place {
    Loop former = nullptr;
    int operands = 0;
    Size grain = 0;
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

void divide(const Place &place, char **args, Size n, const Size *step, void *data) {
    parallel_with_flags(n, place.grain, [&, data](long begin, long end) {
        char *part[kMost];
        for (int i = 0; i < place.operands; ++i) part[i] = args[i] + begin * step[i];
        const Size size = end - begin;
        place.former(part, &size, step, data);
    });
}

template <int I> void loop(char **args, const Size *count, const Size *step, void *data) {
    const Place &place = places[I];
    const Size n = count[0];
    const int last = place.operands - 1;
    if (n < 2 * place.grain || threads() == 1 || step[last] <= 0 || !apart(args, n, step, last)) place.former(args, count, step, data);
    else divide(place, args, n, step, data);
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
