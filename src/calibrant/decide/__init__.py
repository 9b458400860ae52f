"""From numbers to decisions: answer or abstain, sets of labels, drift, advice. Numpy only, no torch."""
