"""Model kinds behind `evolve.protocols.Model`. Importing the package loads none of them."""
