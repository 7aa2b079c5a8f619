# SPDX-License-Identifier: Apache-2.0
"""A certificate in words: what it promises, on what conditions, what was found."""
