"""What the program tells about itself: words, examples, manual pages, its surroundings."""
