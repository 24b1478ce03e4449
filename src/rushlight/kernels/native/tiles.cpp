// Products of bfloat16 matrices and attention and convolutions, on processors with AMX.
#if defined(__x86_64__) && defined(__linux__) && (defined(__clang__) || __GNUC__ >= 11)
#include <sys/syscall.h>
#include <unistd.h>

#include "attention_pairs.h"
#include "tiles.h"

// Asks the system for leave to use the tiles' registers, for all threads of the process; 0 where it is given.  (Signal handlers
// with a stack of their own need 8 KiB more of it from then on, so that it is asked for when tiles are first wanted.)
RL_EXPORT long rl_leave_bf16() {
    constexpr long kAsk = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return syscall(SYS_arch_prctl, kAsk, kTileData);
}

RL_PAIRS(rl::Tiles, _tiles_bf16)
RL_CONVOLUTIONS(rl::Tiles, _tiles_bf16)
#endif
