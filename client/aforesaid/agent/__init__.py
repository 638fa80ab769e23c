"""The contract as Python: what is beside this file is generated from proto/agent by `make proto`, and committed."""
