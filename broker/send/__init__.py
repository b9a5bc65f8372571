"""What is stored of what producers send."""
