// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include <polyscan/registry.hpp>
#include <polyscan/version.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <thread>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif

#include <sys/utsname.h>
#include <unistd.h>

namespace polyscan::tool {

namespace {

std::string processor() {
    std::ifstream cpuinfo("/proc/cpuinfo");
    for (std::string line; std::getline(cpuinfo, line);)
        if (line.starts_with("model name"))
            if (const auto colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
    return "unknown";
}

} // namespace

std::string program_version() { return version; }

std::string compiler() {
#if defined(__clang__)
    return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#elif defined(__GNUC__)
    return fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#else
    return "unknown";
#endif
}

std::optional<double> parallel_region_us() {
#ifdef _OPENMP
    constexpr std::size_t regions = 301;
    std::vector<double> us;
    for (std::size_t i = 0; i < regions; ++i) {
        const double start = omp_get_wtime();
#pragma omp parallel
        asm volatile(""); // or there would be no region
        us.push_back(1e6 * (omp_get_wtime() - start));
    }
    std::nth_element(us.begin(), us.begin() + regions / 2, us.end());
    return us[regions / 2];
#else
    return std::nullopt;
#endif
}

std::uint64_t physical_memory() {
    return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

nlohmann::ordered_json machine_facts() {
    utsname system{};
    uname(&system);
    return {{"processor", processor()},
            {"processors", std::thread::hardware_concurrency()},
            {"memory_bytes", physical_memory()},
            {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)}};
}

nlohmann::ordered_json backend_facts() {
    auto all = nlohmann::ordered_json::array();
    for (const std::string& name : registered_backends()) {
        const auto backend = make_backend(name);
        const availability state = backend->available();
        all.push_back({{"name", name},
                       {"available", state.available},
                       {"reason", state.reason},
                       {"description", state ? backend->description() : ""},
                       {"threads", state ? backend->threads() : 0}});
    }
    return all;
}

} // namespace polyscan::tool
