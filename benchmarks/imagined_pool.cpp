// A pool of imagined threads, in place of pool.cpp: the caller does all pieces in turn, and each is put down to the thread that would be free first.
// What a kernel would take on so many threads is then known on any machine, but for what threads take from each other: caches, memory, waking.
#include <algorithm>
#include <chrono>
#include <vector>

#include "common.h"

namespace rl {
namespace {

struct Told {
    double work = 0, span = 0, jobs = 0, pieces = 0;  // microseconds of all pieces, those of the busiest threads, and how many
} told;

int wanted_threads = 1;

double now() {
    using Clock = std::chrono::steady_clock;
    return std::chrono::duration<double, std::micro>(Clock::now().time_since_epoch()).count();
}

}  // namespace

int threads() { return wanted_threads; }

void run(long count, long grain, Body body, void *context) {
    const long least = count / (8L * threads());  // as in pool.cpp
    if (grain < least) grain = (least + grain - 1) / grain * grain;
    std::vector<double> busy(threads());
    for (long begin = 0; begin < count; begin += grain, ++told.pieces) {
        const double start = now();
        body(context, begin, std::min(begin + grain, count));
        const double took = now() - start;
        *std::min_element(busy.begin(), busy.end()) += took;
        told.work += took;
    }
    told.span += *std::max_element(busy.begin(), busy.end());
    ++told.jobs;
}

}  // namespace rl

RL_EXPORT int rl_abi(void) { return RL_ABI; }
RL_EXPORT void rl_set_threads(int n) { rl::wanted_threads = std::max(n, 1); }
RL_EXPORT int rl_get_threads(void) { return rl::threads(); }
// What was told since the last time.
RL_EXPORT void rl_told(double *to) {
    to[0] = rl::told.work, to[1] = rl::told.span, to[2] = rl::told.jobs, to[3] = rl::told.pieces;
    rl::told = {};
}
