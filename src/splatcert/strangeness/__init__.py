# SPDX-License-Identifier: Apache-2.0
"""Is a camera like those calibrated on? A score with a known error rate, and a test for many.

Neither uses a label, and neither approves of a camera: both can only point out a difference.
"""
