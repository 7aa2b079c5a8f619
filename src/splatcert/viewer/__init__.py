# SPDX-License-Identifier: Apache-2.0
"""The interactive viewer: renders, boxes and view difficulty in the browser."""
