"""Border posts to other libraries: scikit-learn, river, MLflow, data frames. Each is imported by its own name."""
