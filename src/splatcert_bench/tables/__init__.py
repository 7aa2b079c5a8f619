# SPDX-License-Identifier: Apache-2.0
"""Each table of the evaluation is one function from a bench."""
