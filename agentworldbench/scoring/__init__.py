"""From predictions to numbers: the judge's verdicts and the rule metrics."""
