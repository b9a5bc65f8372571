"""Many processes on one folder: who is in, who may append, what they tell each other."""
