"""A run on disk: its typed record, its files, its model card, the texts it was trained on. No model is loaded."""
