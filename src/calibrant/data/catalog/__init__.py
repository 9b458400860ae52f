"""Public datasets, declared one file each; a new file here is a new dataset."""
