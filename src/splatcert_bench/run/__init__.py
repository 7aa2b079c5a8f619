# SPDX-License-Identifier: Apache-2.0
"""A bench as jobs with artefacts and fingerprints."""
