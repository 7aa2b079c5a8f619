# SPDX-License-Identifier: Apache-2.0
"""The paper's whole evaluation on a list of scenes: jobs, their artefacts, and the study."""
