"""The measurements, one subject a module; each has NAME and measure(run)."""
