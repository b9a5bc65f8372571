"""The rows that commands print: field names, order and meaning are a contract with scripts."""
