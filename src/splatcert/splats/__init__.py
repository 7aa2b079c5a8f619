# SPDX-License-Identifier: Apache-2.0
"""What is rendered: Gaussians, their colour basis, and the files people keep them in."""
