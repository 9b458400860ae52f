"""What ``calibrant evaluate --json`` always gives, with or without unfamiliar text."""

DETECTION = {"nbaucc_0.5", "nbaucc_0.7", "nbaucc_1.0", "auroc", "aupr", "fpr95"}
KEYS = {
    *("accuracy", "ece", "nll", "brier", "aurc", "misclassification", "ood", "n_test", "n_ood"),
    *("mean_confidence_test", "mean_confidence_ood"),
}
