// SPDX-License-Identifier: Apache-2.0
/// Threads that a pool starts inherit the processors of the thread that starts them. With OMP_PROC_BIND the OpenMP
/// runtime binds the initial thread to one processor, and a pool of another library would run on that one alone.
#pragma once

#include <sched.h>

namespace polyscan::tool {

/// While it lives, the calling thread may run on all processors that the OpenMP runtime has, not only on its own.
class unbound {
public:
    unbound();
    unbound(const unbound&) = delete;
    unbound& operator=(const unbound&) = delete;
    ~unbound();

private:
    cpu_set_t before_{};
    bool changed_ = false;
};

} // namespace polyscan::tool
