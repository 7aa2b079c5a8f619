# SPDX-License-Identifier: Apache-2.0
"""A bench as jobs with output files and fingerprints."""
