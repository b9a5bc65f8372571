"""Who runs the kernels: this process, or Spark."""
