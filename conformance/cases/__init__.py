"""The cases, a module for each family or two; docs/conformance.md says how to add one."""
