"""What runs on the far side of the process boundary. Standard library only; nothing here may import the project."""
