// SPDX-License-Identifier: Apache-2.0
// The instruction set in use: the best this machine has, unless told otherwise.
#pragma once

#include <string>
#include <vector>

#include "view.hpp"

namespace splat {

std::vector<const Kernels*> available_kernels();  // best first
const Kernels& kernels();
bool choose_kernels(const std::string& name);  // false when this machine has no such set

}  // namespace splat
