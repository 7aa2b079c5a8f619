# SPDX-License-Identifier: Apache-2.0
"""Tables of the evaluation, each a function of the studies of a bench."""
