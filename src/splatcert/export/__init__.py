# SPDX-License-Identifier: Apache-2.0
"""What a certificate knows of every Gaussian, in files that other tools open."""
