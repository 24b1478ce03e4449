// Loops of NumPy's on all threads: flags of the processor, by which NumPy warns, come from all parts.
#pragma once
#include <atomic>
#include <cfenv>

#include "common.h"

namespace rl {

constexpr int kFlags = FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID;  // those that NumPy looks at

// f(begin, end) on pieces, as parallel_for; flags that are raised there are raised here.
template <class F> void parallel_with_flags(long count, long grain, F f) {
    std::atomic<int> raised{std::fetestexcept(kFlags)};
    parallel_for(count, grain, [&](long begin, long end) {
        std::feclearexcept(kFlags);
        f(begin, end);
        raised |= std::fetestexcept(kFlags);
    });
    if (raised) std::feraiseexcept(raised);
}

}  // namespace rl
