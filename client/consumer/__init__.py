"""What is wanted, and who has which queue."""
