"""The model against measurements: validation, calibration, experiments, and choices that constants cannot upset."""
