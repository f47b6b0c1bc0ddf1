"""Programs of rules: names, restrictions, types and strata; what comes out is an `algebra.programs.Program`."""
