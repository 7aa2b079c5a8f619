# SPDX-License-Identifier: Apache-2.0
"""The `gpu` back end: WebGPU kernels for the device of any vendor."""
