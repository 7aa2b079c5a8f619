# SPDX-License-Identifier: Apache-2.0
"""The linear renderer: one protocol, four back ends."""
