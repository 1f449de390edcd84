"""quorate: model-agnostic private learning."""
