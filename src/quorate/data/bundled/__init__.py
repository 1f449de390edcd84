"""Two public data sets that come with the package: see CITATION.md beside this file."""
