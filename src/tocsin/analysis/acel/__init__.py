"""ACEL formulas: their names, their structure, and the algebra they become."""
