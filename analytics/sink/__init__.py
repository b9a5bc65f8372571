"""Writing to a store from Spark: rows become messages, each once."""
