# SPDX-License-Identifier: Apache-2.0
"""Commands about captures and what is learned from them."""
