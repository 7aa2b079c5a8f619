# SPDX-License-Identifier: Apache-2.0
"""Commands that make certificates and use them."""
