"""`python -m polynya_pipeline <job>`."""

from polynya_pipeline.commands import app  # absolute: spark-submit runs this file as a script

app()
