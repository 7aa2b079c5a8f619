# SPDX-License-Identifier: Apache-2.0
"""What certificate.json contains, as types."""
