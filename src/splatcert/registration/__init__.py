# SPDX-License-Identifier: Apache-2.0
"""New photos in an old capture: found by their features, placed, judged and added to a copy."""
