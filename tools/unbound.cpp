// SPDX-License-Identifier: Apache-2.0
#include "unbound.hpp"

#ifdef _OPENMP
#include <omp.h>
#include <vector>
#endif

namespace polyscan::tool {

unbound::unbound() {
#ifdef _OPENMP
    // Without binding there are no places, and the mask is what the user or the system gave: left alone.
    if (omp_get_proc_bind() == omp_proc_bind_false || omp_get_num_places() == 0) return;
    if (sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    cpu_set_t all;
    CPU_ZERO(&all);
    for (int place = 0; place < omp_get_num_places(); ++place) {
        std::vector<int> processors(static_cast<std::size_t>(omp_get_place_num_procs(place)));
        omp_get_place_proc_ids(place, processors.data());
        for (const int processor : processors) CPU_SET(static_cast<std::size_t>(processor), &all);
    }
    changed_ = sched_setaffinity(0, sizeof all, &all) == 0;
#endif
}

unbound::~unbound() {
    if (changed_) sched_setaffinity(0, sizeof before_, &before_);
}

} // namespace polyscan::tool
