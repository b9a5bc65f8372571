"""The push consumer: its wiring, pull loop, rules, locks and ways back."""
