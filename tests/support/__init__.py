"""What tests share: a corpus, tiny encoders of every family, runs and studies made without training."""
