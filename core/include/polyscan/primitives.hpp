// SPDX-License-Identifier: Apache-2.0
/// The verbs beside scan: docs/primitives.md has them side by side.
#pragma once

#include <polyscan/by_key.hpp>
#include <polyscan/histogram.hpp>
#include <polyscan/radix_sort.hpp>
#include <polyscan/reduce.hpp>
#include <polyscan/segmented.hpp>
#include <polyscan/select.hpp>
