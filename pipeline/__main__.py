"""`python -m pipeline <job>`, and the entry point of `spark-submit`."""

from polynya_pipeline.commands import app  # absolute: spark-submit runs this file as a script

app()
