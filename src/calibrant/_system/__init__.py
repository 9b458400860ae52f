"""What belongs to the machine: atomic files, and the device that computes. It imports errors alone."""
