"""A run on disk: its typed record, its files, its model card, its texts. No model is loaded."""
