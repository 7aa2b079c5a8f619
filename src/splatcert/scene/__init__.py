# SPDX-License-Identifier: Apache-2.0
"""What was photographed: cameras, photos, sparse points, and who may see labels."""
